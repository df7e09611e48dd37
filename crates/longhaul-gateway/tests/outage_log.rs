//! What the log says of a store that does not work. Alone in its program: other tests would write to the same log.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "clients/mod.rs"]
mod clients;

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clients::{body_of, conversation};
use http::HeaderMap;
use longhaul_gateway::{Decision, Desk, DeskSettings, Incoming};
use longhaul_wire::api::Api;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn asked(desk: &Desk, steps: usize) {
    let body = body_of(Api::Chat, "gpt-4o", &conversation(Api::Chat, steps), true);
    let incoming = Incoming {
        tenant: "".into(),
        api: Api::Chat,
        upstream: "http://provider".into(),
        headers: HeaderMap::new(),
        account: None,
        body: body.to_string().into(),
    };
    match desk.decide(&incoming) {
        Decision::Send(call) => desk.answered(call, None),
        Decision::PassOn(reason) => panic!("passed on: {reason}"),
    }
}

#[test]
fn the_log_names_what_failed_once_and_says_when_it_works_again() {
    let (folder, log) = (tempfile::tempdir().unwrap(), Log::default());
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
    subscriber.init();
    let place = folder.path().join("sessions.db");
    let desk = Desk::open(DeskSettings::new(place.display().to_string())).unwrap();
    asked(&desk, 0);
    let other = rusqlite::Connection::open(&place).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for n in 1..12 {
        asked(&desk, n);
        // Some of the calls try the store again.
        std::thread::sleep(Duration::from_millis(200));
    }
    drop(other);
    desk.close();
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let [failed, works] = log.lines().collect::<Vec<_>>()[..] else { panic!("{log}") };
    assert!(failed.contains("the store does not work: conversations go on in memory"), "{log}");
    assert!(failed.contains("sessions.db is in use by others"), "{log}");
    assert!(works.contains("the store works again"), "{log}");
}
