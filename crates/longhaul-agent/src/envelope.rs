//! What a tool says: whether it worked, its data, a sentence, what went wrong. The model sees it as JSON, or as
//! plain text, which costs it fewer tokens and quotes source as it stands in the file.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// What a tool says.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// Whether it worked.
    pub status: Status,
    /// What was found or done, by name.
    pub data: Map<String, Value>,
    /// The same in a sentence.
    pub text: String,
    /// What went wrong.
    pub error: Option<ToolError>,
    /// Counts and times.
    pub stats: Map<String, Value>,
    /// What was asked, and where.
    pub context: Map<String, Value>,
    /// All of it as plain text; the sentence, if there is none.
    pub plain: Option<String>,
    /// Pictures that were read.
    pub images: Vec<Image>,
}

/// Whether a call worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// All of it.
    Success,
    /// It did, but more was there than is said.
    Partial,
    /// It did not.
    Error,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Such as `image/png`.
    pub media_type: &'static str,
    /// The file.
    pub bytes: Vec<u8>,
}

/// Why a call did not work, said so that a model can mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// The kind.
    pub code: Code,
    /// One sentence that says what, where and what to do.
    pub message: String,
}

/// Kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum Code {
    /// The arguments are not what the tool takes.
    InvalidParam,
    /// There is no tool of this name.
    NoSuchTool,
    /// There is no such file, folder, job or handle.
    NotFound,
    /// The path is not in the project.
    OutsideRoot,
    /// The system does not allow it.
    AccessDenied,
    /// The user, or a rule, does not allow it.
    Denied,
    /// A file that was not read is to be changed.
    NotRead,
    /// A file is another than the one that was read.
    Changed,
    /// The text to replace is not there.
    NoMatch,
    /// The text to replace is there more than once.
    NotUnique,
    /// No text.
    Binary,
    /// More than the tool takes.
    TooLarge,
    /// It took too long.
    Timeout,
    /// The user stopped it.
    Interrupted,
    /// Anything else that the system says.
    Failed,
}

/// How the model sees results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// As plain text.
    #[default]
    Plain,
    /// As JSON: `{status, data, text, error, stats, context}`.
    Json,
}

impl ToolError {
    /// An error of this kind.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// What the system says of a path.
    pub fn of_io(error: &std::io::Error, path: &str) -> Self {
        use std::io::ErrorKind;
        match error.kind() {
            ErrorKind::NotFound => Self::new(Code::NotFound, format!("there is no `{path}`")),
            ErrorKind::PermissionDenied => {
                Self::new(Code::AccessDenied, format!("`{path}` may not be opened: {error}"))
            }
            _ => Self::new(Code::Failed, format!("`{path}`: {error}")),
        }
    }
}

impl Envelope {
    /// It worked; `text` says what in a sentence.
    pub fn success(text: impl Into<String>) -> Self {
        Self {
            status: Status::Success,
            data: Map::new(),
            text: text.into(),
            error: None,
            stats: Map::new(),
            context: Map::new(),
            plain: None,
            images: Vec::new(),
        }
    }

    /// It did not work.
    pub fn error(error: ToolError) -> Self {
        Self { status: Status::Error, error: Some(error.clone()), ..Self::success(error.message) }
    }

    /// With more there than is said.
    pub fn partial_if(mut self, partial: bool) -> Self {
        if partial && self.status == Status::Success {
            self.status = Status::Partial;
        }
        self
    }

    /// With this among its data.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.data.insert(name.to_owned(), value.into());
        self
    }

    /// With this among its counts.
    pub fn counted(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.stats.insert(name.to_owned(), value.into());
        self
    }

    /// With this as plain text.
    pub fn plain(mut self, plain: impl Into<String>) -> Self {
        self.plain = Some(plain.into());
        self
    }

    /// True if the call did not work.
    pub fn is_error(&self) -> bool {
        self.status == Status::Error
    }

    /// What the model sees.
    pub fn shown(&self, form: Form) -> String {
        match (form, &self.error, &self.plain) {
            (Form::Json, ..) => self.to_json().to_string(),
            (Form::Plain, Some(error), None) => format!("Error: {error}"),
            (Form::Plain, Some(error), Some(plain)) => format!("Error: {error}\n{plain}"),
            (Form::Plain, None, Some(plain)) => plain.clone(),
            (Form::Plain, None, None) => self.text.clone(),
        }
    }

    /// As `{status, data, text, error, stats, context}`.
    pub fn to_json(&self) -> Value {
        let mut json = json!({ "status": self.status, "data": self.data, "text": self.text });
        if let (Some(error), Some(fields)) = (&self.error, json.as_object_mut()) {
            fields.insert("error".to_owned(), json!({ "code": error.code, "message": error.message }));
        }
        if let Some(fields) = json.as_object_mut() {
            fields.insert("stats".to_owned(), Value::Object(self.stats.clone()));
            fields.insert("context".to_owned(), Value::Object(self.context.clone()));
        }
        json
    }
}

impl From<Result<Self, ToolError>> for Envelope {
    fn from(result: Result<Self, ToolError>) -> Self {
        result.unwrap_or_else(Self::error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: A-ENVELOPE, A-TOOLS
    #[test]
    fn an_envelope_has_six_fields_and_the_error_only_where_there_is_one() {
        let names = |envelope: &Envelope| -> Vec<String> {
            envelope.to_json().as_object().unwrap().keys().cloned().collect()
        };
        let good = Envelope::success("2 files.").with("total", 2).counted("ms", 1);
        assert_eq!(names(&good), ["status", "data", "text", "stats", "context"]);
        let bad = Envelope::error(ToolError::new(Code::NotFound, "there is no `a`"));
        assert_eq!(names(&bad), ["status", "data", "text", "error", "stats", "context"]);
        assert_eq!(bad.to_json()["error"], json!({"code": "NOT_FOUND", "message": "there is no `a`"}));
        assert_eq!(bad.to_json()["status"], "error");
        assert_eq!(good.clone().partial_if(true).to_json()["status"], "partial");
    }

    #[test]
    fn plain_text_says_that_it_failed() {
        let error = Envelope::error(ToolError::new(Code::Failed, "no"));
        assert_eq!(error.shown(Form::Plain), "Error: no");
        assert_eq!(error.plain("exit code 2").shown(Form::Plain), "Error: no\nexit code 2");
        assert_eq!(Envelope::success("Done.").shown(Form::Plain), "Done.");
    }
}
