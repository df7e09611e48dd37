//! Many conversations at once, while clients leave, the provider fails, the store is locked, removed, full or stopped, and
//! the gateway is started again: no request is refused for its size, no answered call is lost, and no conversation starts
//! over. `LONGHAUL_SOAK="100 200"` has 100 conversations of 200 calls; it is meant for a release build.

#![allow(dead_code, unused_macros, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "clients/mod.rs"]
mod clients;
#[path = "common/mod.rs"]
mod gateways;
#[path = "../../longhaul-store/tests/common/mod.rs"]
mod stores;

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clients::{APIS, body_of, conversation, model};
use gateways::{path, see};
use longhaul::{Profile, Tokens};
use longhaul_fake::{Close, Fake, Trouble};
use longhaul_gateway::{DeskSettings, Gateway, Limits, Open, Settings, start};
use longhaul_store::{Filter, Keeper};
use longhaul_wire::api::Api;
use serde_json::{Value, json};
use stores::Dice;
use stores::postgres::{Server, skipped};
use tokio::task::JoinSet;

const WINDOW: u64 = 12_000;

/// The fake keeps what it gets: so many rounds are looked at together.
const STRETCH: usize = 10;

/// A client asks again so often, as real ones do.
const TRIES: usize = 12;

/// How many conversations, and calls of each.
fn wanted() -> (usize, usize) {
    let wanted = std::env::var("LONGHAUL_SOAK").unwrap_or_default();
    let mut numbers = wanted.split_whitespace().filter_map(|number| number.parse().ok());
    (numbers.next().unwrap_or(9), numbers.next().unwrap_or(60))
}

/// What is wrong with the store in some rounds. What is wrong ends with its range.
trait Ground {
    fn place(&self) -> String;
    /// What happens to the store before a round.
    fn before(&mut self, share: Share);
}

/// Which part of all rounds comes next, in percent, and which came before.
#[derive(Clone, Copy)]
struct Share {
    before: usize,
    now: usize,
}

impl Share {
    fn begins(self, percent: usize) -> bool {
        self.before < percent && percent <= self.now
    }
}

/// The gateway is started again at these shares of all rounds.
const RESTARTS: [usize; 3] = [27, 57, 87];

/// A file: locked, removed, and, where a small disk can be had, on a disk that is full.
struct File {
    path: PathBuf,
    lock: Option<rusqlite::Connection>,
    /// Fills the disk.
    ballast: Option<PathBuf>,
}

impl Ground for File {
    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn before(&mut self, share: Share) {
        if share.begins(8) || share.begins(62) {
            let other = rusqlite::Connection::open(&self.path).unwrap();
            other.busy_timeout(Duration::from_secs(5)).unwrap();
            other.execute_batch("BEGIN IMMEDIATE").unwrap();
            self.lock = Some(other);
        } else if share.begins(18) || share.begins(70) {
            self.lock = None;
        } else if share.begins(35) {
            ["", "-wal", "-shm"]
                .iter()
                .for_each(|end| _ = std::fs::remove_file(format!("{}{end}", self.place())));
        } else if share.begins(42)
            && let Some(ballast) = &self.ballast
        {
            let mut file = std::fs::File::create(ballast).unwrap();
            while file.write_all(&[7; 512]).is_ok() {}
        } else if share.begins(50)
            && let Some(ballast) = &self.ballast
        {
            std::fs::remove_file(ballast).unwrap();
        }
    }
}

/// A server: stopped, hanging, and started again.
struct Postgres {
    server: Server,
    place: String,
}

impl Ground for Postgres {
    fn place(&self) -> String {
        self.place.clone()
    }

    fn before(&mut self, share: Share) {
        if share.begins(10) {
            self.server.stop_at_once();
        } else if share.begins(20) {
            self.server.start_again();
        } else if share.begins(62) {
            self.server.freeze();
        } else if share.begins(72) {
            self.server.thaw();
        }
    }
}

/// One client and its conversation.
struct Client {
    number: usize,
    api: Api,
    session: Option<String>,
    dice: Dice,
}

impl Client {
    fn new(number: usize) -> Self {
        let seed = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(number as u64 + 1);
        Self { number, api: APIS[number % APIS.len()], session: None, dice: Dice(seed) }
    }

    fn messages(&self, steps: usize) -> Vec<Value> {
        let mut messages = conversation(self.api, steps);
        messages[0]["content"] = json!(format!("Task {}: which file defines `main`?", self.number));
        messages
    }

    /// Asks until it is answered, as an agent does. Some calls are left before the answer has come.
    async fn ask(mut self, base: String, steps: usize) -> Self {
        let body = body_of(self.api, model(self.api), &self.messages(steps), true).to_string();
        let wait = Duration::from_secs(60);
        for _ in 0..TRIES {
            let request = gateways::client().post(format!("{base}{}", path(self.api)));
            let request = request.header("content-type", "application/json").body(body.clone());
            if self.dice.roll(12) == 0 {
                let soon = Duration::from_millis(self.dice.roll(40));
                _ = tokio::time::timeout(soon, see(request, wait)).await;
                continue;
            }
            let seen = see(request, wait).await;
            assert!(!matches!(seen.status, 400 | 413 | 422), "{} {steps}: {}", self.number, seen.text());
            if seen.status != 200 || seen.end != gateways::End::Clean || seen.text().contains("\"error\":{") {
                continue;
            }
            let session = seen.header("x-longhaul-session").map(str::to_owned);
            let says = seen.header("x-longhaul").unwrap_or_default().to_owned();
            if let Some(known) = &self.session {
                assert_eq!(session.as_ref(), Some(known), "{} {steps}: another session: {says}", self.number);
            }
            self.session = session.or(self.session);
            return self;
        }
        panic!("{} {steps}: not answered", self.number);
    }
}

/// What the provider does in a stretch of some calls: about one call in ten fails.
fn faults(fake: longhaul_fake::Settings, calls: usize, dice: &mut Dice) -> longhaul_fake::Settings {
    let trouble = |dice: &mut Dice| match dice.roll(6) {
        0 => Trouble::Status(500),
        1 => Trouble::Status(529),
        2 => Trouble::Close,
        3 => Trouble::Cut { after: 2, close: Close::Reset },
        4 => Trouble::Html,
        _ => Trouble::ErrorEvent { after: 1 },
    };
    (0..calls / 10).fold(fake, |fake, _| {
        let at = 1 + dice.roll(calls as u64) as usize;
        fake.trouble(at..=at, trouble(dice))
    })
}

async fn gateway(fake: &Fake, place: &str) -> Gateway {
    let desk = DeskSettings { window: Some(Tokens(WINDOW)), ..DeskSettings::new(place) };
    let mut limits = Limits { stop: Duration::from_secs(5), ..Limits::default() };
    if cfg!(debug_assertions) {
        // On a busy machine a debug build may take longer to load conversations after a restart.
        limits.decide = Duration::from_secs(20);
    }
    let settings = Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        anthropic: fake.base_url(),
        openai: fake.base_url() + "/v1",
        others: Vec::new(),
        token: None,
        open: Open::Everything,
        origins: Vec::new(),
        desk,
        limits,
    };
    start(settings).await.unwrap()
}

/// All conversations, round by round, and what is stored in the end.
async fn soak(mut ground: impl Ground) {
    let (clients, rounds) = wanted();
    let mut dice = Dice(0x2545_F491_4F6C_DD1D);
    let new = || longhaul_fake::Settings::new().window(WINDOW).piece(400);
    let fake = new().start().await;
    let mut gateway = self::gateway(&fake, &ground.place()).await;
    let mut all: Vec<Client> = (0..clients).map(Client::new).collect();
    let mut passed_on = HashMap::new();
    let mut refused = 0;
    for round in 0..rounds {
        let percent = |round: usize| round * 100 / rounds;
        let share = Share { before: round.checked_sub(1).map_or(0, percent), now: percent(round) };
        ground.before(share);
        if RESTARTS.iter().any(|restart| share.begins(*restart)) {
            count(&gateway, &mut passed_on);
            gateway.stop().await;
            gateway = self::gateway(&fake, &ground.place()).await;
        }
        if round % STRETCH == 0 {
            refused += looked_at(&fake);
            fake.restart(faults(new(), clients * STRETCH, &mut dice)).await;
        }
        let base = gateways::url(&gateway);
        let mut asking = JoinSet::new();
        all.drain(..).for_each(|client| _ = asking.spawn(client.ask(base.clone(), round)));
        all = asking.join_all().await;
    }
    refused += looked_at(&fake);
    count(&gateway, &mut passed_on);
    gateway.stop().await;
    println!("passed on: {passed_on:?}; refused for size: {refused}");
    assert_eq!(refused, 0);
    stored(&ground.place(), &all, rounds);
}

fn count(gateway: &Gateway, passed_on: &mut HashMap<&'static str, u64>) {
    for (reason, calls) in gateway.figures().passed_on {
        *passed_on.entry(reason).or_default() += calls;
    }
}

/// Requests that the provider has refused for their size. It refuses nothing else that it is sent.
fn looked_at(fake: &Fake) -> usize {
    let log = fake.log();
    let wrong: Vec<&String> = log.iter().filter_map(|call| call.violation.as_ref()).collect();
    let too_long = |call: &&longhaul_fake::Call| call.counts.prompt > WINDOW;
    let refused = log.iter().filter(too_long).count();
    assert!(wrong.is_empty(), "{:?}", &wrong[..wrong.len().min(3)]);
    refused
}

/// Every conversation is one session, with all that was said in it.
fn stored(place: &str, all: &[Client], rounds: usize) {
    let store = longhaul_store::open(place).unwrap();
    assert_eq!(
        store.list(&Filter::default(), 10_000).unwrap().len(),
        all.len(),
        "a conversation started over"
    );
    for client in all {
        let session = client.session.as_ref().unwrap().parse().unwrap();
        let (_, session) = Keeper::open(store.clone(), session, Profile::longhaul()).unwrap();
        let said: String = session.log().messages().iter().flat_map(|message| message.texts()).collect();
        assert!(said.starts_with(&format!("Task {}:", client.number)), "{said}");
        let results = session.log().messages().iter().flat_map(|message| message.results()).count();
        assert_eq!(results, rounds - 1, "conversation {}", client.number);
        assert_eq!(session.audit(), [], "conversation {}", client.number);
    }
}

fn run(ground: impl Ground) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(soak(ground));
}

/// Runs on a disk of its own, which is full for a while.
#[test]
#[ignore = "run by another test as a process of its own"]
fn on_a_small_disk() {
    let Some((folder, _)) = stores::given() else { return };
    let folder = Path::new(&folder);
    run(File { path: folder.join("sessions.db"), lock: None, ballast: Some(folder.join("ballast")) });
}

#[test]
fn nothing_that_happens_to_a_file_ends_a_conversation() {
    let can = Command::new("unshare").args(["--mount", "sh", "-c", "mount -t tmpfs none /mnt"]).output();
    let folder = tempfile::tempdir().unwrap();
    if !can.is_ok_and(|output| output.status.success()) {
        std::io::stderr().write_all(b"SKIPPED: a full disk (no small disk can be mounted here)\n").unwrap();
        return run(File { path: folder.path().join("sessions.db"), lock: None, ballast: None });
    }
    let place = folder.path().display().to_string();
    let child = stores::child("on_a_small_disk", &place, "");
    let (clients, rounds) = wanted();
    let megabytes = 24 + clients * rounds / 50;
    let mount = format!("mount -t tmpfs -o size={megabytes}m none {place} && exec \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &mount, "sh"]).arg(child.get_program()).args(child.get_args());
    command.envs(child.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn nothing_that_happens_to_a_server_ends_a_conversation() {
    match Server::start(&["fsync=off"]) {
        Ok(server) => {
            let place = server.database();
            run(Postgres { server, place });
        }
        Err(why) => skipped(&why),
    }
}
