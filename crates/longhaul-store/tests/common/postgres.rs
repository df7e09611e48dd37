//! A Postgres server for the tests, which is thrown away behind them. `LONGHAUL_TEST_POSTGRES=postgres://…`
//! uses one that is there already; its user must be allowed to make databases, which stay there.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A new database on the server of this test program. `None`, and a line that says so, if there is none.
pub fn database() -> Option<String> {
    static SERVER: OnceLock<Result<Place, String>> = OnceLock::new();
    let server = SERVER.get_or_init(|| match std::env::var("LONGHAUL_TEST_POSTGRES") {
        Ok(url) => Ok(Place::There(url)),
        // What a disk does is not tested here.
        Err(_) => Server::start(&["fsync=off"]).map(Place::Started),
    });
    match server {
        Ok(Place::There(url)) => Some(database_on(url)),
        Ok(Place::Started(server)) => Some(server.database()),
        Err(why) => {
            skipped(why);
            None
        }
    }
}

/// A new database on the server of a URL.
pub fn database_on(url: &str) -> String {
    make_database(|database| with_database(url, database))
}

enum Place {
    There(String),
    Started(Server),
}

/// Says that tests are skipped where nothing captures it.
pub fn skipped(why: &str) {
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    let line = format!("SKIPPED: Postgres: {test} ({why})\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// The URL with another database in it.
fn with_database(url: &str, database: &str) -> String {
    let (url, options) = url.split_once('?').map_or((url, None), |(url, options)| (url, Some(options)));
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find('/').map_or(url.len(), |at| host + at);
    let options = options.map(|options| format!("?{options}")).unwrap_or_default();
    format!("{}/{database}{options}", &url[..end])
}

fn make_database(url_of: impl Fn(&str) -> String) -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("test_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    sql(&url_of("postgres"), &format!("CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0"));
    url_of(&name)
}

/// Asks a server, and gives all values of the answer as text.
pub fn sql(url: &str, sql: &str) -> Vec<String> {
    try_sql(url, sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"))
}

pub fn try_sql(url: &str, sql: &str) -> Result<Vec<String>, tokio_postgres::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        let driver = tokio::spawn(connection);
        let mut values = Vec::new();
        for message in client.simple_query(sql).await? {
            if let tokio_postgres::SimpleQueryMessage::Row(row) = message {
                values.extend((0..row.len()).map(|at| row.get(at).unwrap_or_default().to_owned()));
            }
        }
        drop(client);
        driver.await.ok();
        Ok(values)
    })
}

/// A server with its data in a folder. It ends with this process, however that ends.
pub struct Server {
    folder: PathBuf,
    programs: PathBuf,
    /// Who runs it, if not we: a server does not run as root.
    user: Option<&'static str>,
    port: u16,
    /// Waits until we are gone, then stops the server and removes the folder.
    guard: Child,
}

impl Server {
    pub fn start(settings: &[&str]) -> Result<Self, String> {
        let programs = programs().ok_or("no initdb found")?;
        let user = is_root().then(|| *["postgres", "nobody"].iter().find(|user| exists(user)).unwrap());
        let folder = tempfile::Builder::new().prefix("longhaul-postgres-").tempdir().unwrap().keep();
        if let Some(user) = user {
            run(Command::new("chown").arg(user).arg(&folder))?;
        }
        let script = format!(
            "trap '' INT TERM HUP; cat >/dev/null; {} stop -m immediate -D {}; rm -rf {}",
            as_user(user, &programs.join("pg_ctl")),
            folder.join("data").display(),
            folder.display()
        );
        let guard = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let port = settings.iter().find_map(|setting| setting.strip_prefix("port=")?.parse().ok());
        let server = Self { folder, programs, user, port: port.unwrap_or(5432), guard };
        let data = server.data();
        run(server
            .program("initdb")
            .args(["--no-sync", "-A", "trust", "-U", "postgres", "--no-locale"])
            .args(["-E", "UTF8", "-D", data.to_str().unwrap()]))?;
        let mut lines = format!(
            "listen_addresses = ''\nunix_socket_directories = '{}'\nmax_connections = 200\nshared_buffers = 64MB\n",
            server.folder.display()
        );
        settings.iter().for_each(|setting| lines += &format!("{setting}\n"));
        let append = format!("cat >> {}", data.join("postgresql.conf").display());
        let mut cat = server.program("sh").args(["-c", &append]).stdin(Stdio::piped()).spawn().unwrap();
        cat.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        cat.wait().unwrap();
        server.start_again();
        Ok(server)
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// A program, as the user that runs the server.
    fn program(&self, name: &str) -> Command {
        let program = if name == "sh" { "sh".into() } else { self.programs.join(name) };
        match self.user {
            Some(user) => {
                let mut command = Command::new("runuser");
                command.args(["-u", user, "--"]).arg(program).current_dir("/");
                command
            }
            None => Command::new(program),
        }
    }

    /// Makes a certificate for `localhost` and lets the server use it. Gives the file of who signed it; `None`
    /// without `openssl`.
    pub fn use_tls(&self, url: &str) -> Option<PathBuf> {
        let script = "
            set -e
            openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test
            openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost
            echo subjectAltName=DNS:localhost > names
            openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 \\
                -extfile names
            chmod 600 server.key; chmod 644 ca.pem";
        let script = format!("cd {}; {script}", self.folder.display());
        run(self.program("sh").args(["-c", &script])).ok()?;
        for (name, value) in [
            ("ssl_cert_file", format!("{}/server.pem", self.folder.display())),
            ("ssl_key_file", format!("{}/server.key", self.folder.display())),
            ("ssl", "on".to_owned()),
        ] {
            sql(url, &format!("ALTER SYSTEM SET {name} = '{value}'"));
        }
        sql(url, "SELECT pg_reload_conf()");
        Some(self.folder.join("ca.pem"))
    }

    /// Starts a server that was stopped, and waits until it answers.
    pub fn start_again(&self) {
        let log = self.folder.join("log");
        let mut start = self.program("pg_ctl");
        start.args(["start", "-w", "-t", "60", "-l"]).arg(&log).arg("-D").arg(self.data());
        run(&mut start)
            .unwrap_or_else(|error| panic!("{error}\n{}", std::fs::read_to_string(&log).unwrap_or_default()));
    }

    /// Ends the server at once: its processes have no time to write anything.
    pub fn kill(&self) {
        let pid = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        let pid = pid.lines().next().unwrap().to_owned();
        let mut all = children_of(&pid);
        all.insert(0, pid);
        run(Command::new("kill").arg("-9").args(&all)).ok();
        let is_there = |pid: &String| Path::new("/proc").join(pid).exists();
        while all.iter().any(is_there) {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(format!(".s.PGSQL.{}", self.port))
    }

    /// Stops all processes of the server where they are.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets them go on.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        let pid = pid.lines().next().unwrap().to_owned();
        // One of them may end at this moment.
        run(Command::new("kill").arg(signal).arg(&pid).args(children_of(&pid))).ok();
    }

    /// Ends the server as an administrator does who is in a hurry.
    pub fn stop_at_once(&self) {
        run(self.program("pg_ctl").args(["stop", "-m", "immediate", "-D"]).arg(self.data())).unwrap();
    }

    /// A new database.
    pub fn database(&self) -> String {
        make_database(|database| self.url(database))
    }

    fn url(&self, database: &str) -> String {
        let host = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{host}:{}/{database}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        self.guard.wait().ok();
    }
}

fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let debian = debian.map(|version| version.unwrap().path().join("bin"));
    let mut folders = std::env::split_paths(&path).chain(debian);
    // A link leads to where the other programs are.
    folders.find_map(|folder| {
        let initdb = folder.join("initdb").canonicalize().ok()?;
        initdb.parent().filter(|folder| folder.join("pg_ctl").exists()).map(Path::to_owned)
    })
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

fn exists(user: &str) -> bool {
    Command::new("id").arg(user).output().is_ok_and(|output| output.status.success())
}

fn as_user(user: Option<&str>, program: &Path) -> String {
    match user {
        Some(user) => format!("cd /; runuser -u {user} -- {}", program.display()),
        None => program.display().to_string(),
    }
}

fn children_of(pid: &str) -> Vec<String> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    children.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

fn run(command: &mut Command) -> Result<(), String> {
    // A server that is started keeps what it was given open: it gets no pipe of ours.
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("{command:?}: {other:?}")),
    }
}
