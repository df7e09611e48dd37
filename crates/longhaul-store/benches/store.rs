//! How fast a store is, and how small: `cargo bench -p longhaul-store`.
//!
//! `-- --only append|open|search|recall` runs one part; `--sessions N` lists and searches N sessions instead of 2,000; `--corpus FOLDER` stores the transcripts
//! of a folder; `--folder FOLDER` puts the stores there instead of in the system's folder for such files.
//! `--store postgres` asks a server that is started for it, `--store postgres://…` one that is there, which
//! gets a database for each part.

#![allow(missing_docs, dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/common/postgres.rs"]
mod server;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul::{Block, Cursor, Entry, Json, Message, Models, Profile, Role, Session};
use longhaul_store::{About, Filter, Keeper, SessionId, Store};
use longhaul_wire::transcript;
use server::Server;

fn main() {
    let options = Options::read();
    let folder = match &options.folder {
        Some(folder) => tempfile::tempdir_in(folder).unwrap(),
        None => tempfile::tempdir().unwrap(),
    };
    let places = match options.store.as_deref() {
        None => Places::Files(folder.path().to_owned()),
        Some("postgres") => Places::Started(Server::start(&[]).unwrap()),
        Some(url) => Places::Server(url.to_owned()),
    };
    if options.runs("append") {
        appending(&places, folder.path());
    }
    if options.runs("open") {
        opening(&places);
    }
    if options.runs("search") {
        searching(&places, options.sessions);
    }
    if options.runs("recall") {
        recalling(&places);
    }
    if let Some(corpus) = &options.corpus {
        storing(&places, corpus);
    }
}

/// Where the stores are.
enum Places {
    Files(PathBuf),
    Server(String),
    Started(Server),
}

impl Places {
    /// A place for a new store.
    fn place(&self, name: &str) -> String {
        match self {
            Self::Files(folder) => folder.join(name).display().to_string(),
            Self::Server(url) => server::database_on(url),
            Self::Started(server) => server.database(),
        }
    }
}

struct Options {
    only: Option<String>,
    store: Option<String>,
    sessions: usize,
    corpus: Option<PathBuf>,
    folder: Option<PathBuf>,
}

impl Options {
    fn read() -> Self {
        let arguments: Vec<String> = std::env::args().collect();
        let value = |name: &str| {
            arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1))
        };
        Self {
            only: value("--only").cloned(),
            store: value("--store").cloned(),
            sessions: value("--sessions").map_or(2_000, |number| number.parse().unwrap()),
            corpus: value("--corpus").map(PathBuf::from),
            folder: value("--folder").map(PathBuf::from),
        }
    }

    fn runs(&self, part: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only == part)
    }
}

/// Appends with one fsync each, beside plain fsyncs of as many bytes.
fn appending(places: &Places, folder: &Path) {
    const STEPS: usize = 2_000;
    let mut words = Words(1);
    let steps: Vec<[Entry; 3]> = (0..STEPS).map(|n| step(&mut words, n, 4_000)).collect();
    let json: usize = steps.iter().flatten().map(length).sum();

    let mut file = File::create(folder.join("plain")).unwrap();
    let plain = times(&steps, |_| {
        file.write_all(&[7; 12_000]).unwrap();
        file.sync_data().unwrap();
    });
    let place = places.place("append.db");
    let store = longhaul_store::open(&place).unwrap();
    let id = begin(&*store);
    let (mut end, mut of_processor) = (Cursor(1), Vec::new());
    let appends = times(&steps, |step| {
        let begun = processor_time();
        store.append(id, end, step).unwrap();
        of_processor.push(processor_time() - begun);
        end.0 += step.len();
    });
    of_processor.sort_unstable();
    println!("append of 3 entries of 4 KB: {}; plain fsync of 12 KB: {}", shares(&appends), shares(&plain));
    println!("of the append, time of the processor: {}", shares(&of_processor));
    drop(store);
    println!("stored: {:.3} of {json} bytes of JSON", size(&place) as f64 / json as f64);
}

fn opening(places: &Places) {
    let store = longhaul_store::open(&places.place("open.db")).unwrap();
    let mut words = Words(2);
    let mut session = Session::new(Profile::longhaul(), Models::builtin().find("gpt-4o").clone());
    for n in 0..3_334 {
        for entry in step(&mut words, n, 600) {
            if let Entry::Message(message) = entry {
                session.push(Arc::unwrap_or_clone(message));
            }
        }
    }
    let mut keeper = Keeper::create(store.clone(), &About::default(), &session).unwrap();
    keeper.finish(&session).unwrap();
    let id = keeper.id();
    let runs = [(); 15];
    let begun = time_of_all_threads();
    let load = times(&runs, |_| assert!(store.load(id).unwrap().entries.len() > 10_000));
    let of_processors = (time_of_all_threads() - begun) / runs.len() as u32;
    let open = times(&runs, |_| drop(Keeper::open(store.clone(), id, Profile::longhaul()).unwrap()));
    let json: usize = session.since(Cursor(0)).map(length).sum();
    println!(
        "10,002 messages, {json} bytes of JSON: load {}; with its replay {}",
        shares(&load),
        shares(&open)
    );
    println!("of a load, time of all processors: {of_processors:.1?}");
}

fn searching(places: &Places, sessions: usize) {
    let place = places.place("search.db");
    let store = longhaul_store::open(&place).unwrap();
    let mut words = Words(3);
    let mut json = 0;
    let begun = Instant::now();
    for n in 0..sessions {
        let mut entries: Vec<Entry> = (0..200).map(|at| short(&mut words, n * 200 + at)).collect();
        json += entries.iter().map(length).sum::<usize>();
        let id = begin(&*store);
        let rest = entries.split_off(entries.len() / 2);
        store.append(id, Cursor(1), &entries).unwrap();
        store.append(id, Cursor(1 + entries.len()), &rest).unwrap();
    }
    println!("{sessions} sessions of 200 short messages were stored in {:.1?}", begun.elapsed());
    let runs = [(); 50];
    let listed = times(&runs, |_| assert_eq!(store.list(&Filter::default(), 50).unwrap().len(), 50));
    let all =
        times(&runs[..5], |_| assert_eq!(store.list(&Filter::default(), sessions).unwrap().len(), sessions));
    println!("list the newest 50: {}; all: {}", shares(&listed), shares(&all));
    let rare = format!("rare{}", sessions * 100);
    let (common, two) = (Words::word(3), format!("{} {}", Words::word(3), Words::word(400)));
    for query in [rare.as_str(), &common, &two, "压缩会话", "会话", "缩", "nothinglikethis", "rare1*"]
    {
        let hits = store.search(query, &Filter::default(), 20).unwrap().len();
        let found = times(&runs, |_| drop(store.search(query, &Filter::default(), 20).unwrap()));
        println!("search {query:?}, {hits} hits: {}", shares(&found));
    }
    drop(store);
    println!("stored: {:.3} of {json} bytes of JSON", size(&place) as f64 / json as f64);
    println!("{}", tables(&place));
}

/// Looks handles up among those of 1,000, 100,000 and 1,000,000 sessions, and gives back what one names.
fn recalling(places: &Places) {
    let place = places.place("recall.db");
    let store = longhaul_store::open(&place).unwrap();
    let mut session = Session::new(Profile::longhaul(), Models::builtin().find("gpt-4o").clone())
        .with_window(longhaul::Tokens(16_000));
    let mut words = Words(4);
    for n in 0..60 {
        session.prepare(None).unwrap();
        for entry in step(&mut words, n, 1_500) {
            if let Entry::Message(message) = entry {
                session.push(Arc::unwrap_or_clone(message));
            }
        }
    }
    let keeper = Keeper::create(store.clone(), &About::default(), &session).unwrap();
    let handle = session.ledger().edits().find_map(|(edit, _)| edit.originals.first().copied()).unwrap();
    let (whole, short) = (handle.to_string(), handle.short());
    let runs = [(); 500];
    let mut there = 0;
    for sessions in [1_000, 100_000, 1_000_000] {
        fill(&place, there, sessions);
        there = sessions;
        for asked in [&whole, &short] {
            let found = times(&runs, |_| {
                assert_eq!(store.holders("", asked).unwrap().unwrap().sessions, [keeper.id()]);
            });
            println!("{sessions} sessions, lookup by {} digits: {}", asked.len(), shares(&found));
        }
        let unknown = times(&runs, |_| assert_eq!(store.holders("", "0123456789abcdef").unwrap(), None));
        println!("{sessions} sessions, lookup of an unknown handle: {}", shares(&unknown));
        let recalled = times(&runs[..20], |_| {
            let id = store.holders("", &short).unwrap().unwrap().sessions[0];
            let (_, session) = Keeper::open(store.clone(), id, Profile::longhaul()).unwrap();
            session.recall(&whole, &longhaul::RecallPart::Whole).unwrap();
        });
        println!("{sessions} sessions, recall with its session of 180 messages: {}", shares(&recalled));
    }
}

/// Adds sessions, each with one handle, up to this number of them.
fn fill(place: &str, there: usize, sessions: usize) {
    if place.starts_with("postgres") {
        let fill = format!(
            "INSERT INTO longhaul.session (id, tenant, agent, project, title, model, created, updated, entries,
                 messages, calls, bytes, listed)
             SELECT gen_random_uuid(), '', 'bench', '', 'title ' || n, 'm', n, n, 1, 1, 0, 100, 1
             FROM generate_series({there}, {sessions} - 1) AS n;
             INSERT INTO longhaul.original (tenant, handle, session, seq)
             SELECT '', decode(md5(id::text), 'hex'), n, 0 FROM longhaul.session WHERE created BETWEEN {there} AND {sessions};
             ANALYZE longhaul.session; ANALYZE longhaul.original"
        );
        server::sql(place, &fill);
        return;
    }
    let connection = rusqlite::Connection::open(place).unwrap();
    let fill = format!(
        "BEGIN IMMEDIATE;
         WITH RECURSIVE number (n) AS (SELECT {there} UNION ALL SELECT n + 1 FROM number WHERE n + 1 < {sessions})
         INSERT INTO session (id, tenant, agent, project, title, model, created, updated, entries, messages, calls,
             bytes, without_content, listed)
         SELECT randomblob(16), '', 'bench', '', 'title ' || n, 'm', n, n, 1, 1, 0, 100, 0, 1 FROM number;
         INSERT INTO original (tenant, handle, at)
         SELECT '', randomblob(16), n << 32 FROM session WHERE created BETWEEN {there} AND {sessions};
         COMMIT"
    );
    connection.execute_batch(&fill).unwrap();
}

/// Stores recorded sessions as the engine would have worked on them.
fn storing(places: &Places, corpus: &Path) {
    let place = places.place("corpus.db");
    let store = longhaul_store::open(&place).unwrap();
    let (mut json, mut count) = (0, 0);
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(corpus).unwrap().map(|file| file.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.to_string_lossy().ends_with(".jsonl.gz")) {
        let mut session =
            Session::new(Profile::longhaul(), Models::builtin().find("claude-sonnet-4-5").clone());
        let mut keeper = Keeper::create(store.clone(), &About::default(), &session).unwrap();
        for message in transcript::open(path).unwrap() {
            let Ok(message) = message else { break };
            if message.role() == Role::Assistant && session.prepare(message.time()).is_ok() {
                keeper.save(&session).unwrap();
            }
            session.push(message);
        }
        keeper.save(&session).unwrap();
        json += session.since(Cursor(0)).map(length).sum::<usize>();
        count += 1;
    }
    drop(store);
    println!("{count} recorded sessions: {:.3} of {json} bytes of JSON", size(&place) as f64 / json as f64);
    println!("{}", tables(&place));
}

/// Which tables take how much.
fn tables(place: &str) -> String {
    if place.starts_with("postgres") {
        let sql = "SELECT relname || ' ' || (pg_relation_size(oid) + coalesce(pg_relation_size(nullif(reltoastrelid, 0)), 0))
             FROM pg_class WHERE relnamespace = 'longhaul'::regnamespace ORDER BY pg_relation_size(oid) DESC LIMIT 9";
        return server::sql(place, sql).join(", ");
    }
    let connection = rusqlite::Connection::open(place).unwrap();
    let mut select = connection
        .prepare("SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 7")
        .unwrap();
    let rows =
        select.query_map([], |row| Ok(format!("{} {}", row.get::<_, String>(0)?, row.get::<_, i64>(1)?)));
    rows.unwrap().map(Result::unwrap).collect::<Vec<_>>().join(", ")
}

/// How long each run took, the shortest first.
fn times<T>(runs: &[T], mut run: impl FnMut(&T)) -> Vec<Duration> {
    let mut times: Vec<Duration> = runs
        .iter()
        .map(|of| {
            let begun = Instant::now();
            run(of);
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times
}

/// How long this thread has worked: what other programs on the machine take is not in it. Zero where the
/// system does not say.
fn processor_time() -> Duration {
    let says = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = says.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}

/// How long all threads of this process have worked, in hundredths of a second.
fn time_of_all_threads() -> Duration {
    let says = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = says.split(' ').skip(13).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
    Duration::from_millis(10 * ticks.sum::<u64>())
}

fn shares(times: &[Duration]) -> String {
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
    format!("best {:.2?}, p50 {:.2?}, p99 {:.2?}, worst {:.2?}", times[0], at(50), at(99), at(100))
}

fn begin(store: &dyn Store) -> SessionId {
    let id = store.create(&About { agent: "bench".into(), ..About::default() }).unwrap();
    let session = Session::new(Profile::longhaul(), Models::builtin().find("gpt-4o").clone());
    let began: Vec<Entry> = session.since(Cursor(0)).cloned().collect();
    store.append(id, Cursor(0), &began).unwrap();
    id
}

/// What a model says and calls, and what comes back.
fn step(words: &mut Words, n: usize, bytes: usize) -> [Entry; 3] {
    let id = format!("toolu_{n:024}");
    let arguments = Json::new(format!(r#"{{"path":"src/file_{n}.rs"}}"#)).unwrap();
    let call = Block::call(id.as_str(), "Read", arguments);
    [
        Message::user(words.text(bytes)),
        Message::new(Role::Assistant, vec![Block::text(words.text(bytes)), call]),
        Message::result(id, words.text(bytes)),
    ]
    .map(|message| Entry::Message(Arc::new(message)))
}

fn short(words: &mut Words, n: usize) -> Entry {
    let chinese = if n % 100 == 7 { " 引擎压缩会话" } else { "" };
    let text = format!("{} rare{n}{chinese}", words.text(60 + n % 80));
    let message = if n.is_multiple_of(2) { Message::user(text) } else { Message::assistant(text) };
    Entry::Message(Arc::new(message))
}

fn length(entry: &Entry) -> usize {
    serde_json::to_string(entry).unwrap().len()
}

fn size(place: &str) -> u64 {
    if place.starts_with("postgres") {
        let sql = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class
             WHERE relnamespace = 'longhaul'::regnamespace AND relkind = 'r'";
        return server::sql(place, sql)[0].parse().unwrap();
    }
    std::fs::metadata(place).unwrap().len()
}

/// Makes texts of words, of which few are said often and many seldom.
struct Words(u64);

impl Words {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// The word of a number: the larger the number, the longer it is.
    fn word(number: u64) -> String {
        const PARTS: [&str; 24] = [
            "pa", "re", "con", "ti", "lo", "men", "ver", "da", "sub", "ex", "in", "ra", "ke", "mo", "un",
            "tor", "li", "fa", "get", "set", "is", "ne", "po", "ul",
        ];
        let mut word = String::new();
        let mut rest = number;
        loop {
            word.push_str(PARTS[(rest % 24) as usize]);
            rest /= 24;
            if rest == 0 {
                return word;
            }
        }
    }

    fn text(&mut self, bytes: usize) -> String {
        let mut text = String::new();
        while text.len() < bytes {
            let share = (self.roll() % 1_000_000) as f64 / 1_000_000.0;
            text.push_str(&Self::word((20_000_f64.powf(share)) as u64));
            text.push_str(if self.roll().is_multiple_of(11) { ".\n" } else { " " });
        }
        text
    }
}
