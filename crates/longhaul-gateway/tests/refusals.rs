//! Providers that refuse what we put into requests: chat templates with their roles, servers that take no tool of ours.
//! The client hears of a refusal only if its own request earns it. covers: A-ROLE, DESIGN rule 9.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bound;
#[path = "clients/mod.rs"]
mod clients;
mod common;

use clients::{body_of, conversation};
use common::{End, LONG, Seen, ask, settings, url};
use longhaul::{Profile, Tokens};
use longhaul_fake::{Answer, Fake, Settings as Script, Twin};
use longhaul_gateway::{Gateway, Recall, start};
use longhaul_store::UpstreamRefusal;
use longhaul_wire::api::Api;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Microseconds of a day.
const DAY: i64 = 24 * 3_600 * 1_000_000;

/// The tag around a summary in the user's place.
const FRAME: &str = "<summary-of-earlier-messages note=\\\"not the user's words\\\">";

fn script(twin: Twin) -> Script {
    Script::new().twin(twin).answers((0..400).map(|n| Answer::new().text(&format!("I read file {n}."))))
}

struct Ground {
    folder: TempDir,
    profile: Profile,
    window: u64,
    recall: Recall,
}

impl Ground {
    fn new(profile: Profile, window: u64) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), profile, window, recall: Recall::Mcp }
    }

    fn place(&self) -> String {
        self.folder.path().join("sessions.db").display().to_string()
    }

    async fn gateway(&self, fake: &Fake) -> Gateway {
        let mut settings = settings(fake);
        settings.desk.store = self.place();
        settings.desk.window = Some(Tokens(self.window));
        settings.desk.profile = self.profile.clone();
        settings.desk.recall = self.recall;
        start(settings).await.unwrap()
    }

    /// What is known of upstreams.
    fn refusals(&self) -> Vec<UpstreamRefusal> {
        longhaul_store::open(&self.place()).unwrap().refusals().unwrap()
    }

    /// Lets so many days pass for what is known.
    fn days_pass(&self, days: i64) {
        let store = longhaul_store::open(&self.place()).unwrap();
        for mut refusal in store.refusals().unwrap() {
            refusal.learnt.0 -= days * DAY;
            store.keep_refusal(&refusal).unwrap();
        }
    }
}

/// A conversation of several turns after so many steps. `task` tells conversations apart.
fn talk(api: Api, task: &str, steps: usize) -> Value {
    const TURN: usize = 6;
    let said = |role: &str, text: String| match (api, role) {
        (Api::Responses, "assistant") => {
            json!({"type": "message", "role": role, "content": [{"type": "output_text", "text": text}]})
        }
        _ => json!({"role": role, "content": text}),
    };
    let of_step = if api == Api::Responses { 3 } else { 2 };
    let mut all: Vec<Value> = Vec::new();
    for (at, element) in conversation(api, steps).into_iter().enumerate() {
        let is_turn = at > 1 && (at - 1).is_multiple_of(TURN * of_step);
        if is_turn {
            all.push(said("assistant", format!("Read up to {at}.")));
            all.push(said("user", format!("Go on from {at}.")));
        }
        all.push(element);
    }
    all[0]["content"] = task.into();
    if api == Api::Chat {
        all.insert(0, json!({"role": "system", "content": "You read files."}));
    }
    body_of(api, "gpt-4o", &all, true)
}

async fn tell(gateway: &Gateway, api: Api, task: &str, steps: usize) -> Seen {
    let mut body = talk(api, task, steps);
    body["stream"] = steps.is_multiple_of(2).into();
    ask(&url(gateway), api, &body, LONG).await
}

/// The conversation up to so many steps; each call is answered.
async fn tell_all(gateway: &Gateway, api: Api, task: &str, steps: usize) {
    for n in 0..steps {
        let seen = tell(gateway, api, task, n).await;
        assert_eq!((seen.status, seen.end), (200, End::Clean), "{api:?} {task} {n}: {}", seen.text());
    }
}

fn refused(gateway: &Gateway) -> u64 {
    gateway.figures().resent.get("refused").copied().unwrap_or_default()
}

fn messages(body: &Value) -> &[Value] {
    body["messages"].as_array().or_else(|| body["input"].as_array()).unwrap()
}

fn role(message: &Value) -> &str {
    message["role"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn every_profile_passes_every_chat_template() {
    let mut kinds = tokio::task::JoinSet::new();
    for api in [Api::Chat, Api::Responses] {
        let twins = [Twin::PLAIN, Twin::OPENAI_NOW, Twin::VLLM_QWEN, Twin::GEMMA];
        let speaks = |twin: &Twin| match api {
            Api::Chat => true,
            _ => [Twin::PLAIN, Twin::OPENAI_NOW].contains(twin),
        };
        for (twin, profile) in twins
            .into_iter()
            .filter(speaks)
            .flat_map(|twin| Profile::all().into_iter().map(move |p| (twin, p)))
        {
            kinds.spawn(async move {
                let case = format!("{} {} {api:?}", twin.name, profile.name);
                let ground = Ground::new(profile.clone(), 9_000);
                let fake = script(twin).start().await;
                let gateway = ground.gateway(&fake).await;
                for n in 0..34 {
                    let seen = tell(&gateway, api, "Read all files.", n).await;
                    assert_eq!((seen.status, seen.end), (200, End::Clean), "{case} {n}: {}", seen.text());
                }
                let edited = fake.log().iter().any(|call| call.body.to_string().contains("recall "));
                assert!(edited, "{case}: nothing was edited");
                assert_eq!((fake.violations(), refused(&gateway)), (Vec::new(), 0), "{case}");
                assert_eq!(ground.refusals(), [], "{case}");
                gateway.stop().await;
            });
        }
    }
    while let Some(ended) = kinds.join_next().await {
        ended.unwrap();
    }
}

fn no_system_summary(body: &Value) -> Option<&'static str> {
    let is_ours = |message: &Value| message.to_string().contains("Summary of ");
    let is_system = |message: &&Value| ["system", "developer"].contains(&role(message));
    messages(body).iter().filter(is_system).any(is_ours).then_some("System message must be at the beginning.")
}

#[tokio::test]
async fn a_refused_role_is_learnt_used_by_the_next_conversation_and_forgotten() {
    for api in [Api::Chat, Api::Responses] {
        let ground = Ground::new(Profile::archive(), 9_000);
        let fake = script(Twin::PLAIN).refuses(no_system_summary).start().await;
        let gateway = ground.gateway(&fake).await;
        tell_all(&gateway, api, "Read all files.", 24).await;
        assert_eq!((fake.violations().len(), refused(&gateway)), (1, 1), "{api:?}");
        let known = ground.refusals();
        let [refusal] = &known[..] else { panic!("{known:?}") };
        assert_eq!((&*refusal.form, &*refusal.model), ("system", "gpt-4o"));
        assert_eq!(&*refusal.says, "System message must be at the beginning.");
        assert!(refusal.upstream.contains("127.0.0.1"), "{refusal:?}");
        // Requests extend what was really sent: the summary keeps its place, byte for byte.
        let log = fake.log();
        let sent: Vec<&Value> =
            log.iter().filter(|call| call.violation.is_none()).map(|call| &call.body).collect();
        let breaks = sent.windows(2).filter(|pair| !messages(pair[1]).starts_with(messages(pair[0]))).count();
        assert!(sent.last().unwrap().to_string().contains(FRAME));
        assert!(breaks <= 8, "{api:?}: {breaks} breaks");
        // The next conversation begins with what is known, here and after a restart.
        tell_all(&gateway, api, "Read the second half.", 24).await;
        gateway.stop().await;
        let gateway = ground.gateway(&fake).await;
        tell_all(&gateway, api, "Read the third part.", 24).await;
        assert_eq!(fake.violations().len(), 1, "{api:?}");
        gateway.stop().await;
        ground.days_pass(6);
        let gateway = ground.gateway(&fake).await;
        tell_all(&gateway, api, "Read the fourth part.", 24).await;
        assert_eq!(fake.violations().len(), 1, "{api:?}");
        gateway.stop().await;
        // After a week the profile's own role is tried again.
        ground.days_pass(2);
        let gateway = ground.gateway(&fake).await;
        tell_all(&gateway, api, "Read the fifth part.", 24).await;
        assert_eq!(fake.violations().len(), 2, "{api:?}");
        gateway.stop().await;
    }
}

/// A fold that was made before the window is full: the client's own bytes still fit, and are tried first.
#[tokio::test]
async fn the_clients_own_bytes_are_tried_first_where_they_fit() {
    let ground = Ground::new(Profile::archive(), 24_000);
    let fake = script(Twin::PLAIN).refuses(no_system_summary).start().await;
    let gateway = ground.gateway(&fake).await;
    tell_all(&gateway, Api::Chat, "Read all files.", 50).await;
    assert_eq!((fake.violations().len(), refused(&gateway)), (1, 1));
    let log = fake.log();
    let at = log.iter().position(|call| call.violation.is_some()).unwrap();
    let client = talk(Api::Chat, "Read all files.", at);
    assert_eq!(log[at + 1].body["messages"], client["messages"]);
    // The next ones extend it, until a summary stands in the user's place.
    let folded =
        log[at + 2..].iter().position(|call| call.body.to_string().contains(FRAME)).unwrap() + at + 2;
    for pair in log[at + 1..folded].windows(2) {
        assert!(messages(&pair[1].body).starts_with(messages(&pair[0].body)));
    }
    assert_eq!(&*ground.refusals()[0].form, "system");
    gateway.stop().await;
}

fn no_system_at_all(body: &Value) -> Option<&'static str> {
    messages(body).iter().any(|message| role(message) == "system").then_some("System role not supported")
}

/// Chat templates without a system message: a client that sends none passes, and so does the note of a profile.
#[tokio::test]
async fn a_note_is_taken_back_where_no_system_message_may_stand() {
    let ground = Ground::new(Profile::progressive(), 9_000);
    let fake = script(Twin::PLAIN).refuses(no_system_at_all).start().await;
    let gateway = ground.gateway(&fake).await;
    for n in 0..30 {
        let mut body = talk(Api::Chat, "Read all files.", n);
        body["messages"].as_array_mut().unwrap().remove(0);
        let seen = ask(&url(&gateway), Api::Chat, &body, LONG).await;
        assert_eq!(seen.status, 200, "{n}: {}", seen.text());
    }
    assert_eq!((fake.violations().len(), refused(&gateway)), (1, 1));
    let last = fake.log().last().unwrap().body.clone();
    assert!(messages(&last)[0].to_string().contains("!!!SUMMARY!!!"), "{last}");
    gateway.stop().await;
}

fn no_two_users(body: &Value) -> Option<&'static str> {
    let roles: Vec<&str> = messages(body).iter().map(role).collect();
    let is_user_twice = roles.windows(2).any(|pair| pair == ["user", "user"]);
    is_user_twice.then_some("Conversation roles must alternate user/assistant/user/assistant/...")
}

#[tokio::test]
async fn a_second_user_message_is_never_sent_over_chat_and_is_taken_back_over_responses() {
    for (api, most) in [(Api::Chat, 0), (Api::Responses, 1)] {
        let ground = Ground::new(Profile::longhaul(), 9_000);
        let fake = script(Twin::PLAIN).refusals_in_stream().refuses(no_two_users).start().await;
        let gateway = ground.gateway(&fake).await;
        tell_all(&gateway, api, "Read all files.", 30).await;
        tell_all(&gateway, api, "Read the second half.", 30).await;
        assert_eq!((fake.violations().len(), refused(&gateway)), (most, most as u64), "{api:?}");
        let known: Vec<_> = ground.refusals().iter().map(|refusal| refusal.form.to_string()).collect();
        assert_eq!(known, vec!["user"; most], "{api:?}");
        gateway.stop().await;
    }
}

fn no_tool_of_ours(body: &Value) -> Option<&'static str> {
    body["tools"].to_string().contains("longhaul_recall").then_some("Unknown tool.")
}

#[tokio::test]
async fn a_refused_tool_is_left_out() {
    for api in [Api::Chat, Api::Responses, Api::Anthropic] {
        let ground = Ground { recall: Recall::Fill, ..Ground::new(Profile::longhaul(), 9_000) };
        let fake = script(Twin::PLAIN).refuses(no_tool_of_ours).start().await;
        let gateway = ground.gateway(&fake).await;
        tell_all(&gateway, api, "Read all files.", 20).await;
        tell_all(&gateway, api, "Read the second half.", 4).await;
        assert_eq!((fake.violations().len(), refused(&gateway)), (1, 1), "{api:?}");
        assert_eq!(&*ground.refusals()[0].form, "tool", "{api:?}");
        gateway.stop().await;
    }
}

fn no_ours(body: &Value) -> Option<&'static str> {
    body.to_string().contains("recall ").then_some("No.")
}

fn nothing(_: &Value) -> Option<&'static str> {
    Some("temperature: Input should be less than or equal to 2")
}

#[tokio::test]
async fn a_provider_that_refuses_everything_is_heard_as_it_says_it() {
    for api in [Api::Chat, Api::Responses, Api::Anthropic] {
        for (profile, window) in
            [(Profile::archive(), 9_000), (Profile::longhaul(), 9_000), (Profile::longhaul(), 200_000)]
        {
            let case = format!("{} {window} {api:?}", profile.name);
            let ground = Ground { recall: Recall::Fill, ..Ground::new(profile, window) };
            let (fake, alone) =
                (script(Twin::PLAIN).start().await, script(Twin::PLAIN).refuses(nothing).start().await);
            let gateway = ground.gateway(&fake).await;
            tell_all(&gateway, api, "Read all files.", 24).await;
            let before = fake.log().last().unwrap().body.clone();
            fake.restart(script(Twin::PLAIN).refuses(nothing)).await;
            for _ in 0..2 {
                let asked = fake.log().len();
                let body = talk(api, "Read all files.", 23);
                let through = ask(&url(&gateway), api, &body, LONG).await;
                let direct = ask(&alone.base_url(), api, &body, LONG).await;
                assert_eq!(through.without_ours(), direct, "{case}");
                assert!((2..=3).contains(&(fake.log().len() - asked)), "{case}");
            }
            assert_eq!(ground.refusals(), [], "{case}");
            // The conversation is as it was before.
            fake.restart(script(Twin::PLAIN)).await;
            let seen = tell(&gateway, api, "Read all files.", 24).await;
            assert_eq!(seen.status, 200, "{case}");
            let after = fake.log().last().unwrap().body.clone();
            assert!(messages(&after).starts_with(&messages(&before)[..3]), "{case}");
            gateway.stop().await;
        }
    }
}

#[tokio::test]
async fn a_request_without_anything_of_ours_is_sent_once() {
    for api in [Api::Chat, Api::Responses, Api::Anthropic] {
        let ground = Ground::new(Profile::longhaul(), 200_000);
        let fake = script(Twin::PLAIN).refuses(nothing).start().await;
        let gateway = ground.gateway(&fake).await;
        for n in 1..4 {
            assert_eq!(tell(&gateway, api, "Read all files.", 3).await.status, 400, "{api:?}");
            assert_eq!(fake.log().len(), n, "{api:?}");
        }
        gateway.stop().await;
    }
}

/// Takes no summary from the 20th step on.
fn no_summary_later(body: &Value) -> Option<&'static str> {
    let is_late = body.to_string().contains("line of call_19") || messages(body).len() > 40;
    (is_late && body.to_string().contains("not the user's words")).then_some("No summaries, please.")
}

/// The client's own bytes go out without thinking that was signed after a summary, and stay so.
#[tokio::test]
async fn bound_thinking_is_not_refused_after_the_clients_own_bytes() {
    for stream in [false, true] {
        let script = bound::script().twin(Twin::ANTHROPIC_NOW).window(400_000).refuses(no_summary_later);
        let mut client = bound::Client::with(script, Profile::longhaul(), 100_000, stream).await;
        for n in 0..30 {
            client.step(2_000).await;
            if n == 8 {
                assert!(client.act(json!({ "do": "compact" })).await);
            }
        }
        let stale = client.fake.stale_thinking();
        assert_eq!((stale.refused, stale.dropped), (0, 0), "{stream} {stale:?}");
        let log = client.fake.log();
        let refused: Vec<usize> = (0..log.len()).filter(|at| log[*at].violation.is_some()).collect();
        assert_eq!(refused.len(), 1, "{stream} {:?}", client.fake.violations());
        // All that the client has said, and less thinking than before: later requests extend that.
        let own = &log[refused[0] + 1].body;
        assert!(!own.to_string().contains("recall "), "{own}");
        let last = &log.last().unwrap().body;
        assert!(messages(last).starts_with(messages(own)) && messages(last).len() > messages(own).len());
        assert!(client.thinking_sent() > 0);
    }
}

/// A provider that takes no text of ours anywhere: as long as the client's own bytes fit, nothing is edited.
#[tokio::test]
async fn where_no_form_is_taken_the_client_is_left_alone_as_long_as_it_fits() {
    let ground = Ground::new(Profile::archive(), 24_000);
    let fake = script(Twin::PLAIN).refuses(no_ours).start().await;
    let gateway = ground.gateway(&fake).await;
    let mut statuses = Vec::new();
    for n in 0..46 {
        statuses.push(tell(&gateway, Api::Chat, "Read all files.", n).await.status);
    }
    let first_lost = statuses.iter().position(|status| *status != 200).unwrap_or(statuses.len());
    // Nothing that the client could have sent itself is lost.
    let sizes: Vec<usize> =
        (0..46).map(|n| talk(Api::Chat, "Read all files.", n).to_string().len()).collect();
    assert!(first_lost > 20 && sizes[first_lost.min(45)] > 60_000, "{first_lost} {sizes:?}");
    assert!(refused(&gateway) <= 8, "{}", refused(&gateway));
    gateway.stop().await;
}
