//! `serve` over a Postgres that is not there yet.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;
#[allow(dead_code)]
#[path = "../../longhaul-store/tests/common/postgres.rs"]
mod postgres;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use common::{Home, refused};
use postgres::{Server, skipped};

fn serve(home: &Home, store: &str) -> Command {
    home.longhaul(&["serve", "--listen", "127.0.0.1:0", "--store", store])
}

/// A gateway that has said that it waits.
fn waiting(home: &Home, store: &str) -> Child {
    let mut child = serve(home, store).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("waiting for the store") && line.contains("cannot be used: "), "{line}");
    assert!(!line.contains("s3cret"), "{line}");
    // Whoever writes more is not stopped by us.
    std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    child
}

fn terminate(child: &mut Child) -> Option<i32> {
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    child.wait().unwrap().code()
}

#[test]
fn a_database_that_is_starting_is_waited_for() {
    let home = Home::new();
    let server = match Server::start(&["fsync=off"]) {
        Ok(server) => server,
        Err(why) => return skipped(&why),
    };
    let url = server.database();
    server.stop_at_once();
    let mut child = waiting(&home, &url);
    server.start_again();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("listening on http://127.0.0.1:"), "{line}");
    assert_eq!(terminate(&mut child), Some(0));
    // Nobody is let in to a database that does not exist: waiting would not help.
    let output = serve(&home, &format!("{url}_missing")).output().unwrap();
    let said = refused(&output, 2);
    assert!(said.contains("refuses the connection: "), "{said}");
}

#[test]
fn a_gateway_that_waits_ends_when_it_is_told_to() {
    let home = Home::new();
    let mut child = waiting(&home, "postgres://ann:s3cret@127.0.0.1:1/work");
    assert_eq!(terminate(&mut child), Some(0));
}
