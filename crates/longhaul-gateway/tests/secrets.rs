//! Keys and content: in no log line, no error, no value that is shown. One test for each program, since what
//! is logged is caught for the whole of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::io;
use std::sync::{Arc, Mutex};

use common::{APIS, LONG, Scripted, body, client, path, see, settings, url};
use longhaul_fake::{Close, Settings, Trouble};
use longhaul_gateway::{Token, start_with};
use tracing_subscriber::fmt::MakeWriter;

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

const SECRETS: [&str; 6] =
    ["sk-secret-1", "sk-secret-2", "T0ken-secret", "hunter2", "Which file", "a secret answer"];

#[tokio::test]
async fn nothing_secret_is_logged_or_shown() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_max_level(tracing::Level::TRACE);
    tracing::subscriber::set_global_default(subscriber.finish()).unwrap();

    let fake = Settings::new()
        .answer("a secret answer")
        .trouble(4..=6, Trouble::Status(401))
        // Each of these is sent once more: a connection that was kept may have ended.
        .trouble(7..=12, Trouble::Close)
        .trouble(13..=15, Trouble::Cut { after: 2, close: Close::Fin })
        .start()
        .await;
    let mut settings = settings(&fake);
    settings.token = Some(Token::new("T0ken-secret"));
    settings.anthropic = settings.anthropic.replace("http://", "http://me:hunter2@");
    settings.openai = settings.openai.replace("http://", "http://me:hunter2@");
    let mut shown = format!("{settings:?}");
    let gateway = start_with(settings, Arc::new(Scripted::default())).await.unwrap();
    shown += &format!("{gateway:?} {:?}", gateway.figures());
    for round in 0..5 {
        for api in APIS {
            let at = format!("{}/t/T0ken-secret{}?key=sk-secret-1", url(&gateway), path(api));
            let request = client().post(at).header("authorization", "Bearer sk-secret-1");
            let request = request.header("x-api-key", "sk-secret-2").body(body(api, true).to_string());
            let seen = see(request, LONG).await;
            // What the provider says is the provider's; what we say is ours.
            if seen.status == 502 || seen.status == 403 {
                shown += &seen.text();
            }
            shown += &format!("{:?}", seen.headers);
            assert!(round != 2 || seen.status == 502, "{seen:?}");
        }
    }
    shown += &see(client().get(url(&gateway) + "/t/T0ken-secret/sk-secret-1"), LONG).await.status.to_string();
    shown += &see(client().get(url(&gateway) + "/t/wrong-T0ken-secret/v1/models"), LONG).await.text();
    shown += &see(client().get(url(&gateway) + "/t/T0ken-secret/metrics"), LONG).await.text();
    gateway.stop().await;

    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines = log.lines().filter(|line| line.contains("longhaul_gateway")).count();
    assert!(lines >= 15, "{log}");
    assert!(log.contains("how=\"extends\"") && log.contains("view=27682"), "{log}");
    for secret in SECRETS {
        assert!(!log.contains(secret), "{secret} in {log}");
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}
