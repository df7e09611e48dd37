//! Talks to any server of the three APIs, and says what each call cost:
//!
//!     cargo run -p longhaul-model --example ask -- openai http://127.0.0.1:8080 MODEL [WINDOW]
//!
//! Questions come from standard input, one a line. The API is `anthropic`, `openai` or `openai-responses`;
//! the key is in LONGHAUL_KEY, if one is needed.

use std::error::Error;
use std::io::{BufRead, Write};

use longhaul::{Frame, Json, Message, Models, Outcome, Prepared, Profile, Session, Tokens};
use longhaul_model::{Delta, Fault, Key, Model, Provider};
use longhaul_wire::api::{Api, Request};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [api, base_url, model, rest @ ..] = arguments.as_slice() else {
        return Err("usage: ask API BASE_URL MODEL [WINDOW]".into());
    };
    let api = Api::from_name(api).ok_or("the API is anthropic, openai or openai-responses")?;
    let provider = Provider::new(api, base_url, Key::from_env("LONGHAUL_KEY"))?;
    let mut session = Session::new(Profile::longhaul(), Models::builtin().find(model).clone());
    if let Some(window) = rest.first() {
        session.set_window(Tokens(window.parse()?));
    }
    let frame = format!(r#"{{"model":{model:?},"max_tokens":120}}"#);
    session.set_frame(Frame::from_json(&Json::new(frame)?).ok_or("no frame")?);
    for question in std::io::stdin().lock().lines() {
        session.push(Message::user(question?));
        answer(&mut session, &provider).await?;
    }
    Ok(())
}

/// Asks until the question is answered: a request that is too long is compacted and asked again.
async fn answer(session: &mut Session, provider: &Provider) -> Result<(), Box<dyn Error>> {
    loop {
        let ticket = match session.prepare(None)? {
            Prepared::Send(ticket) => ticket,
            Prepared::Summarise(job) => {
                session.resolve(job.id, Outcome::Failed("no model writes summaries here".into()));
                continue;
            }
        };
        let mut show = |delta: Delta<'_>| {
            if let Delta::Text(text) = delta {
                print!("{text}");
                _ = std::io::stdout().flush();
            }
        };
        match provider.ask(Request::of(&session.outgoing()), &mut show).await {
            Ok(reply) => {
                if let Some(usage) = &reply.usage {
                    session.observe(ticket, usage);
                    let share = usage.cache_read * 100 / usage.prompt().0.max(1);
                    println!(
                        "\n[prompt {}, {share} % read from the cache, answer {}]",
                        usage.prompt(),
                        usage.output
                    );
                }
                reply.messages.iter().for_each(|message| _ = session.push(message.clone()));
                return Ok(());
            }
            Err(Fault::TooLong { overflow, says }) => {
                println!("[{says}]");
                session.overflowed(ticket, overflow);
            }
            Err(fault) => return Err(fault.into()),
        }
    }
}
