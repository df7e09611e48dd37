//! The loop: a line is a command or a message; while the agent works, lines wait their turn.

use std::collections::VecDeque;
use std::process::ExitCode;

use longhaul::Role;
use longhaul_agent::{Agent, AgentError, Ended};
use longhaul_config::Config;
use tokio_util::sync::CancellationToken;

use super::commands;
use super::completion::meant;
use super::context_line::context_line;
use super::editor::{Editor, Input};
use super::front::TerminalFront;
use super::prompt::Means;
use super::screen::Screen;
use crate::agent::options::Options;
use crate::agent::shell::Commands;
use crate::error::Failure;
use crate::terminal::{FAINT, STRONG, one_line, short, width};

/// A person and an agent.
pub struct Conversation<'a> {
    pub agent: Agent,
    pub front: TerminalFront,
    pub options: Options,
    pub config: &'a Config,
    /// How commands of the agent are kept in.
    pub commands: Commands,
    /// The person wants to leave.
    pub leaving: bool,
    /// The last turn has no answer: it can be gone on with.
    unfinished: bool,
    /// What was typed while the agent worked.
    waiting: VecDeque<String>,
    /// What came of the first line that was not done.
    failed: Option<u8>,
}

/// Exit codes of a pipe whose lines were not all done; `run` has the same.
const FAILED: u8 = 1;
const BAD_INPUT: u8 = 2;
const STEP_LIMIT: u8 = 3;
const INTERRUPTED: u8 = 130;

impl<'a> Conversation<'a> {
    pub fn new(
        agent: Agent,
        front: TerminalFront,
        options: Options,
        config: &'a Config,
        commands: Commands,
    ) -> Self {
        Self {
            agent,
            front,
            options,
            config,
            commands,
            leaving: false,
            unfinished: false,
            waiting: VecDeque::new(),
            failed: None,
        }
    }

    /// Talks until the person leaves. A person has seen what was not done; who reads a pipe has the exit code.
    pub async fn talk(&mut self, mut editor: Editor) -> Result<ExitCode, Failure> {
        editor.listen();
        self.greet();
        let mut interrupted = false;
        while !self.leaving {
            if let Some(line) = self.waiting.pop_front() {
                self.front.screen.line(format_args!("{STRONG}> {}{STRONG:#}", one_line(&line, width() - 2)));
                self.hear(&line, &mut editor).await;
                continue;
            }
            self.front.screen.flush();
            editor.ask();
            match editor.next().await {
                Input::Line(line) => {
                    interrupted = false;
                    if !editor.is_terminal() && !line.trim().is_empty() {
                        self.front
                            .screen
                            .line(format_args!("{STRONG}> {}{STRONG:#}", one_line(&line, width() - 2)));
                    }
                    self.hear(&line, &mut editor).await;
                }
                Input::Cleared => interrupted = false,
                Input::Interrupt if !interrupted => {
                    interrupted = true;
                    self.front.screen.faint("/quit or Ctrl-D leaves, and so does Ctrl-C once more");
                }
                Input::Interrupt | Input::End => self.leaving = true,
            }
        }
        let stored = self.agent.finish();
        self.front.screen.flush();
        editor.close();
        stored?;
        let said = !self.agent.session().log().messages().is_empty();
        if let (true, Some(keeper)) = (self.front.attended && said, self.agent.keeper()) {
            // The editor is closed: nothing is typed any longer.
            Screen::stdout().faint(format_args!("`longhaul --resume {}` goes on with it", keeper.id()));
        }
        let failed = self.failed.filter(|_| !self.front.attended);
        Ok(failed.map_or(ExitCode::SUCCESS, ExitCode::from))
    }

    fn greet(&self) {
        let (screen, session) = (&self.front.screen, self.agent.session());
        let folder = self.agent.project().root().display().to_string();
        screen.line(format_args!(
            "{STRONG}longhaul{STRONG:#} {FAINT}{} · profile {} · {}{FAINT:#}",
            one_line(self.agent.model_name(), 40),
            session.profile().name,
            one_line(&folder, 60),
        ));
        if self.front.attended {
            screen.faint("/help says what there is; Ctrl-C interrupts, Ctrl-D leaves");
        }
        for line in self.commands.lines() {
            if self.commands.is_open() { screen.bad(line) } else { screen.faint(line) }
        }
        self.tell_unknown_model();
        let messages = session.log().messages();
        let last = messages.iter().rev().find(|message| message.role() == Role::User);
        if let Some(said) = last.and_then(|message| message.texts().next()) {
            let count = messages.len();
            screen
                .faint(one_line(&format!("goes on after {count} messages; you said last: {said}"), width()));
        }
        self.tell_context();
    }

    /// Says that nothing is known of the model, if it is so: a wrong name looks the same.
    pub fn tell_unknown_model(&self) {
        let session = self.agent.session();
        if session.model().is_unknown() && self.options.window(self.config).is_none() {
            let window = short(session.budget().window.0);
            self.front.screen.faint(format_args!(
                "nothing is known of this model: {window} tokens are taken for its window (--window says another)"
            ));
        }
    }

    /// How full the context is.
    pub fn tell_context(&self) {
        let line = context_line(self.agent.session(), &self.front.spent, width());
        self.front.screen.faint(line);
    }

    /// A line that a person typed.
    async fn hear(&mut self, line: &str, editor: &mut Editor) {
        let text = meant(line);
        let text = text.trim();
        match text.strip_prefix('/') {
            Some(command) => {
                if let Err(problem) = commands::run(self, command) {
                    self.failed.get_or_insert(BAD_INPUT);
                    self.front.screen.bad(one_line(&problem, 3 * width()));
                }
            }
            None if text.is_empty() && self.unfinished => self.turn(None, editor).await,
            None if text.is_empty() => {}
            None => self.turn(Some(text), editor).await,
        }
    }

    /// Has the agent work. Lines that are typed meanwhile wait, or answer a question.
    async fn turn(&mut self, input: Option<&str>, editor: &mut Editor) {
        let stop = CancellationToken::new();
        self.front.prompt.set(Means::Waits);
        let (screen, asked, prompt) =
            (self.front.screen.clone(), self.front.asked.clone(), self.front.prompt.clone());
        let is_terminal = editor.is_terminal();
        let mut waiting = Vec::new();
        let ended = {
            let turn = self.agent.turn(input, &mut self.front, &stop);
            tokio::pin!(turn);
            loop {
                // Lines that nobody types are read when their turn comes.
                if is_terminal {
                    editor.ask();
                }
                tokio::select! {
                    ended = &mut turn => break Some(ended),
                    input = editor.next() => match input {
                        // The next prompt is drawn at once, before the agent has heard the answer.
                        Input::Line(line) => match asked.answer(line) {
                            Ok(()) => prompt.set(Means::Waits),
                            Err(line) if line.trim().is_empty() => {}
                            Err(line) => {
                                screen.faint("(waits its turn)");
                                waiting.push(line);
                            }
                        },
                        Input::Interrupt | Input::Cleared if !stop.is_cancelled() => {
                            prompt.set(Means::Waits);
                            stop.cancel();
                        }
                        Input::Cleared => {}
                        // Twice is meant.
                        Input::Interrupt | Input::End => break None,
                    },
                }
            }
        };
        self.waiting.extend(waiting);
        self.front.prompt.set(Means::Heard);
        self.front.end_answer();
        match ended {
            Some(ended) => self.tell_end(ended),
            None => self.leaving = true,
        }
    }

    fn tell_end(&mut self, ended: Result<Ended, AgentError>) {
        let screen = &self.front.screen;
        self.unfinished = !matches!(ended, Ok(Ended::Answered(_)));
        let code = match &ended {
            Ok(Ended::Answered(_)) => None,
            Ok(Ended::Interrupted) => Some(INTERRUPTED),
            Ok(Ended::StepLimit(_)) => Some(STEP_LIMIT),
            Err(_) => Some(FAILED),
        };
        self.failed = self.failed.or(code);
        match ended {
            Ok(Ended::Answered(_)) => {}
            Ok(Ended::Interrupted) => {
                screen.faint("interrupted: say what to do instead; an empty line goes on")
            }
            Ok(Ended::StepLimit(steps)) => {
                screen.faint(format_args!("{steps} steps were used up: an empty line goes on"))
            }
            Err(error) => {
                screen.bad(one_line(&error.to_string(), 5 * width()));
                screen.faint("an empty line tries again");
            }
        }
        self.tell_context();
    }
}
