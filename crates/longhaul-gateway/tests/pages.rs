//! Web pages of other sites: none uses any route, with or without the token, unless its origin is listed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{LONG, Seen, client, see, settings, url};
use longhaul_fake::{Fake, Settings};
use longhaul_gateway::{Gateway, Open, Token, start};
use reqwest::Method;
use tempfile::TempDir;

/// The first request of a conversation.
const BODY: &str = r#"{"model":"claude-sonnet-4-5","max_tokens":9,"system":"You are an agent.",
    "tools":[{"name":"bash","input_schema":{"type":"object"}}],
    "messages":[{"role":"user","content":"Planted by a page"}]}"#;
const LISTED: &str = "http://localhost:3000";

async fn gateway(fake: &Fake, folder: &TempDir) -> Gateway {
    let mut settings = settings(fake);
    settings.desk.store = folder.path().join("sessions.db").display().to_string();
    settings.token = Some(Token::of_one_user("T0ken"));
    settings.open = Open::Apis;
    settings.origins = vec![LISTED.parse().unwrap()];
    start(settings).await.unwrap()
}

/// A request with these headers. The token is in its path: a page may have learnt it.
async fn asked(gateway: &Gateway, method: Method, path: &str, headers: &[(&str, &str)]) -> Seen {
    let mut request = client().request(method.clone(), format!("{}{path}", url(gateway)));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = if method == Method::POST { request.body(BODY) } else { request };
    see(request, LONG).await
}

const ROUTES: [(Method, &str); 15] = [
    (Method::POST, "/v1/messages"),
    (Method::POST, "/v1/chat/completions"),
    (Method::POST, "/v1/responses"),
    (Method::POST, "/t/T0ken/v1/messages"),
    (Method::POST, "/v1/messages/count_tokens"),
    (Method::POST, "/t/T0ken/mcp"),
    (Method::GET, "/v1/models"),
    (Method::GET, "/v1/responses"),
    (Method::GET, "/healthz"),
    (Method::GET, "/readyz"),
    (Method::GET, "/metrics"),
    (Method::GET, "/t/T0ken/inspect/api/sessions"),
    (Method::GET, "/t/T0ken/inspect/app.js"),
    (Method::OPTIONS, "/v1/messages"),
    (Method::DELETE, "/v1/files/f1"),
];

#[tokio::test]
async fn no_page_of_another_site_uses_any_route() {
    let (fake, folder) = (Settings::new().start().await, tempfile::tempdir().unwrap());
    let gateway = gateway(&fake, &folder).await;
    let pages: [&[(&str, &str)]; 8] = [
        &[("origin", "https://evil.example")],
        // `fetch(…, {mode: "no-cors"})`, and a form.
        &[
            ("origin", "https://evil.example"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "no-cors"),
            ("content-type", "text/plain"),
        ],
        // A frame without an origin of its own, and a file.
        &[("origin", "null")],
        // An image, a script: no origin is sent with them.
        &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image")],
        &[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "script")],
        // Another program of this machine that serves pages.
        &[("origin", "http://localhost:3001"), ("sec-fetch-site", "same-site")],
        &[("origin", "http://evil.example"), ("connection", "upgrade"), ("upgrade", "websocket")],
        &[("origin", LISTED), ("origin", "http://evil.example")],
    ];
    for headers in pages {
        for (method, path) in ROUTES {
            let seen = asked(&gateway, method.clone(), path, headers).await;
            assert_eq!(seen.status, 403, "{method} {path} {headers:?}: {}", seen.text());
            assert_eq!(seen.header("access-control-allow-origin"), None);
        }
    }
    // In the words of the API, and what to do.
    let anthropic = asked(&gateway, Method::POST, "/v1/messages", pages[0]).await.text();
    assert!(anthropic.contains("permission_error") && anthropic.contains("gateway.origins"), "{anthropic}");
    let openai = asked(&gateway, Method::POST, "/v1/responses", pages[0]).await.text();
    assert!(openai.contains("invalid_request_error") && !openai.contains("permission_error"), "{openai}");
    // Nothing was sent on or stored.
    assert_eq!(fake.log().len(), 0);
    let listed = asked(&gateway, Method::GET, "/t/T0ken/inspect/api/sessions", &[]).await;
    assert!(listed.status == 200 && listed.text().contains("\"total\":0"), "{}", listed.text());
}

/// Programs that are no browsers, and our own page, are let in.
#[tokio::test]
async fn who_is_no_page_of_another_site_gets_in() {
    let (fake, folder) = (Settings::new().start().await, tempfile::tempdir().unwrap());
    let gateway = gateway(&fake, &folder).await;
    let own = url(&gateway);
    let senders: [&[(&str, &str)]; 3] =
        [&[], &[("origin", &own), ("sec-fetch-site", "same-origin")], &[("sec-fetch-site", "none")]];
    for headers in senders {
        let seen = asked(&gateway, Method::POST, "/v1/messages", headers).await;
        assert_eq!(seen.status, 200, "{headers:?} {}", seen.text());
        assert_eq!(asked(&gateway, Method::GET, "/healthz", headers).await.status, 200);
        // Nothing about other pages is in the answer.
        let is_cors = |(name, _): &(String, String)| name.starts_with("access-control") || name == "vary";
        assert!(!seen.headers.iter().any(is_cors), "{:?}", seen.headers);
    }
    assert_eq!(fake.log().len(), 3);
}

#[tokio::test]
async fn a_page_of_a_listed_origin_uses_the_apis_and_no_page() {
    let (fake, folder) = (Settings::new().start().await, tempfile::tempdir().unwrap());
    let gateway = gateway(&fake, &folder).await;
    let page = [("origin", LISTED), ("sec-fetch-site", "same-site"), ("sec-fetch-mode", "cors")];
    let asks = |origin: &'static str| {
        [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type,x-api-key"),
            ("access-control-request-private-network", "true"),
        ]
    };
    let may = asked(&gateway, Method::OPTIONS, "/v1/messages", &asks(LISTED)).await;
    let told = |name: &str| may.header(&format!("access-control-allow-{name}"));
    assert_eq!((may.status, told("origin"), told("methods")), (204, Some(LISTED), Some("POST")));
    assert_eq!((told("headers"), told("private-network")), (Some("content-type,x-api-key"), Some("true")));
    assert_eq!(
        asked(&gateway, Method::OPTIONS, "/v1/messages", &asks("http://evil.example")).await.status,
        403
    );
    assert_eq!(fake.log().len(), 0);

    let seen = asked(&gateway, Method::POST, "/v1/messages", &page).await;
    assert_eq!((seen.status, seen.header("access-control-allow-origin")), (200, Some(LISTED)));
    assert_eq!((seen.header("vary"), fake.log().len()), (Some("origin"), 1));
    // It can read why it is refused, and needs the token where others do.
    let seen = asked(&gateway, Method::POST, "/mcp", &page).await;
    assert_eq!((seen.status, seen.header("access-control-allow-origin")), (401, Some(LISTED)));
    for path in ["/t/T0ken/inspect/", "/t/T0ken/inspect/api/me", "/t/T0ken/inspect/api/sessions"] {
        assert_eq!(asked(&gateway, Method::GET, path, &page).await.status, 403, "{path}");
    }
    // Without an origin nobody knows whose image it is.
    let image = [("sec-fetch-site", "same-site"), ("sec-fetch-dest", "image")];
    assert_eq!(asked(&gateway, Method::GET, "/v1/models", &image).await.status, 403);
}

/// What is open without the token: the APIs, if the settings say so. Never a page, a tool or a change.
#[tokio::test]
async fn apis_that_are_open_open_no_page_and_no_tool() {
    let (fake, folder) = (Settings::new().start().await, tempfile::tempdir().unwrap());
    let gateway = gateway(&fake, &folder).await;
    let status = async |method, path: &str| asked(&gateway, method, path, &[]).await.status;
    assert_eq!(status(Method::POST, "/v1/messages").await, 200);
    assert_eq!(status(Method::POST, "/t/T0ken/v1/messages").await, 200);
    assert_eq!(status(Method::GET, "/metrics").await, 200);
    let act = "/inspect/api/session/00000000-0000-0000-0000-000000000000/act";
    // A change needs what only the page knows, too.
    for (path, with_token) in [("/mcp", 200), (act, 403)] {
        assert_eq!(status(Method::POST, path).await, 401, "{path}");
        assert_eq!(status(Method::POST, &format!("/t/T0ken{path}")).await, with_token, "{path}");
    }
    for path in ["me", "sessions", "search?q=planted", "events"] {
        assert_eq!(status(Method::GET, &format!("/inspect/api/{path}")).await, 401, "{path}");
    }
    assert_eq!(status(Method::GET, "/t/T0ken/inspect/api/search?q=planted").await, 200);
    // Both requests were of one conversation: the token changes nothing about whose it is.
    let all = asked(&gateway, Method::GET, "/t/T0ken/inspect/api/sessions", &[]).await;
    assert!(all.text().contains("\"total\":1"), "{}", all.text());
}
