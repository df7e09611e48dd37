//! A gateway sends keys to the providers that it was told of and to no others: what is for another one is refused with what
//! to do, before anything is sent. A server on this machine gets any path and any key.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::Arc;

use common::{APIS, LONG, PassesOn, body, client, passing, path, raw, see, settings, url};
use longhaul_fake::{Answer, Fake, Settings as Script};
use longhaul_gateway::{Gateway, Reason, start_with};
use longhaul_wire::api::Api;
use serde_json::Value;

/// A gateway that goes on to the real providers. Nothing that these tests ask for is sent there.
async fn to_the_real_ones(fake: &Fake, openai: &str) -> Gateway {
    let anthropic = "https://api.anthropic.com".to_owned();
    let settings = longhaul_gateway::Settings { anthropic, openai: openai.to_owned(), ..settings(fake) };
    start_with(settings, Arc::new(PassesOn(Reason::Side))).await.unwrap()
}

const OPENAI: &str = "https://api.openai.com/v1";

/// Keys, and to which API they are foreign.
const KEYS: [(&str, &str, &[Api]); 8] = [
    ("x-goog-api-key", "AIza-secret", &APIS),
    ("api-key", "0123-secret", &APIS),
    ("authorization", "AWS4-HMAC-SHA256 Credential=secret/1/us-east-1/bedrock, Signature=secret", &APIS),
    ("authorization", "Bearer sk-or-v1-secret", &APIS),
    ("x-api-key", "sk-or-v1-secret", &APIS),
    ("chatgpt-account-id", "secret", &APIS),
    ("authorization", "Bearer sk-ant-secret", &[Api::Chat, Api::Responses]),
    ("authorization", "Bearer sk-proj-secret", &[Api::Anthropic]),
];

#[tokio::test]
async fn keys_of_other_providers_are_refused_in_the_words_of_the_api() {
    let fake = Script::new().start().await;
    let gateway = to_the_real_ones(&fake, OPENAI).await;
    let mut refused = 0;
    for (name, key, foreign) in KEYS {
        for api in foreign {
            let request = client().post(url(&gateway) + path(*api)).header(name, key);
            let seen = see(request.body(body(*api, true).to_string()), LONG).await;
            let error: Value = serde_json::from_slice(&seen.body).unwrap();
            let says = error["error"]["message"].as_str().unwrap();
            assert_eq!((seen.status, error["type"] == "error"), (400, *api == Api::Anthropic), "{says}");
            let base = if *api == Api::Anthropic { "https://api.anthropic.com" } else { OPENAI };
            assert!(says.contains(&format!("and the gateway goes on to {base}")), "{says}");
            assert!(!says.contains("secret") && says.lines().count() == 1, "{says}");
            refused += 1;
        }
    }
    let figures = gateway.figures();
    assert_eq!(figures.refused.get("foreign-key"), Some(&refused));
    assert!(figures.prometheus().contains("longhaul_refused_total{reason=\"foreign-key\"} "));
}

#[tokio::test]
async fn paths_of_other_apis_are_refused_with_what_to_set() {
    let fake = Script::new().start().await;
    let gateway = to_the_real_ones(&fake, OPENAI).await;
    for (path, says) in [
        ("/v1beta/models/gemini-3-pro:generateContent", "leave GOOGLE_GEMINI_BASE_URL"),
        (
            "/v1/projects/p/locations/l/publishers/anthropic/models/c:rawPredict",
            "GOOGLE_VERTEX_BASE_URL unset",
        ),
        ("/model/claude/invoke", "leave ANTHROPIC_BEDROCK_BASE_URL unset"),
        (
            "/openai/deployments/gpt-4o/chat/completions",
            "--openai https://RESOURCE.openai.azure.com/openai/v1",
        ),
        ("/anthropic/v1/messages", "--anthropic and the cloud's address"),
        ("/api/v1/chat/completions", "--openai https://openrouter.ai/api/v1"),
    ] {
        let request = client().post(url(&gateway) + path).header("authorization", "Bearer secret");
        let seen = see(request.body(body(Api::Chat, false).to_string()), LONG).await;
        assert!(seen.status == 400 && seen.text().contains(says), "{path} {} {}", seen.status, seen.text());
    }
    assert_eq!(gateway.figures().refused.get("foreign-path"), Some(&6));
}

#[tokio::test]
async fn paths_that_leave_the_providers_address_are_refused() {
    let fake = Script::new().start().await;
    let gateway = passing(&fake).await;
    let paths = [
        "/v1/../../x",
        "/v1/%2e%2e/%2e%2e/x",
        "//evil.example/v1/messages",
        "/v1/%5c..%5cx",
        "/v1/..%2fx",
        "/v1\\..\\x",
    ];
    for path in paths {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        );
        let seen = raw(&gateway, head.as_bytes()).await;
        assert!(
            seen.starts_with("HTTP/1.1 400 ") && seen.contains("out of the provider's address"),
            "{path} {seen}"
        );
    }
    assert_eq!((fake.log().len(), gateway.figures().refused.get("path")), (0, Some(&(paths.len() as u64))));
}

/// vLLM, Ollama and the like take any key and have paths of their own.
#[tokio::test]
async fn a_server_on_this_machine_gets_any_key_and_any_path() {
    let calls = KEYS.len() * APIS.len();
    let script = Script::new().answers((0..calls).map(|n| Answer::new().text(&n.to_string())));
    let fake = script.start().await;
    let gateway = passing(&fake).await;
    for (name, key, _) in KEYS {
        for api in APIS {
            let request = client().post(url(&gateway) + path(api)).header(name, key);
            let request = request.header("content-type", "application/json");
            let seen = see(request.body(body(api, true).to_string()), LONG).await;
            assert_eq!(seen.status, 200, "{name} {api:?} {}", seen.text());
            assert!(fake.log().last().unwrap().header(name).is_some(), "{name}");
        }
    }
    for path in ["/v1beta/models/m:generateContent", "/api/v1/models", "/openai/v1/models"] {
        let seen = see(client().get(url(&gateway) + path), LONG).await;
        assert!(seen.status != 400 && !seen.text().contains("longhaul"), "{path} {}", seen.text());
    }
    assert!(gateway.figures().refused.is_empty());
}

/// A request of a provider that `/to/N/` names has that provider's key.
#[tokio::test]
async fn a_provider_of_the_agents_own_files_gets_its_own_keys() {
    let fake = Script::new().start().await;
    let mut settings = settings(&fake);
    settings.others = vec![fake.base_url()];
    settings.openai = OPENAI.to_owned();
    let gateway = start_with(settings, Arc::new(PassesOn(Reason::Side))).await.unwrap();
    let request = client().post(url(&gateway) + "/to/0/v1/chat/completions").header("api-key", "0123");
    let request = request.header("content-type", "application/json");
    let seen = see(request.body(body(Api::Chat, false).to_string()), LONG).await;
    assert!(seen.status == 200 && fake.log()[0].header("api-key").is_some(), "{}", seen.text());
}
