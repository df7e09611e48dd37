//! The slots of summaries: one table, one row each. A template names the slots it has a place
//! for; who fills them is code (`facts`) or a model.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Language;

/// What a later summary does with the values of an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inherit {
    /// Its own values stand behind them.
    Append,
    /// They hold until something newer is said: where the work stands is said once.
    Newest,
    /// Files: their reads and changes are added up.
    Count,
    /// Every summary says it anew.
    Anew,
}

/// What the values of a slot look like in prose. Slots that share a section are told apart by it
/// where a summary has to be read from its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// A sentence.
    Words,
    /// `` `path`: changed 2×, read 1× ``
    File,
    /// `` `command` → exit 0 ``
    Command,
    /// ``message (`call`) → open``
    Problem,
    /// Entries of an extract.
    Lines,
}

/// When the values of a slot are left out of a summary that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Yield {
    /// As its size demands.
    BySize,
    /// Late: it is what people want.
    Late,
}

struct Row {
    name: &'static str,
    english: &'static str,
    chinese: &'static str,
    inherit: Inherit,
    look: Look,
    yields: Yield,
}

macro_rules! slots {
    ($($slot:ident $name:literal $english:literal $chinese:literal $inherit:ident $look:ident $yields:ident;)*) => {
        /// A place in a template, for one kind of statement.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Slot {
            $(#[doc = $english] $slot,)*
        }

        impl Slot {
            const ALL: &[Self] = &[$(Self::$slot),*];

            fn row(self) -> Row {
                match self {
                    $(Self::$slot => Row {
                        name: $name,
                        english: $english,
                        chinese: $chinese,
                        inherit: Inherit::$inherit,
                        look: Look::$look,
                        yields: Yield::$yields,
                    },)*
                }
            }
        }
    };
}

slots! {
    // slot, its name in templates and ledgers, what a model is told to write there (English,
    // Chinese), what a later summary does with it, what it looks like in prose, when it yields.
    // Of slots that are as long as each other the last in this table yields first.
    Goal "goal" "what the user wants" "用户的目标" Anew Words Late;
    OriginalGoal "original_goal" "what the user wanted at first" "用户最初想做什么" Anew Words Late;
    Unanswered "unanswered" "what was asked and never answered" "提出后没有得到回答的问题" Append Words Late;
    Stack "stack" "languages, frameworks, versions" "语言、框架、版本" Newest Words Late;
    Environment "environment" "operating system, shell, variables that matter" "操作系统、Shell、关键环境变量" Newest Words Late;
    Done "done" "what is done - its result" "已完成的任务 - 结果" Append Words BySize;
    Commands "commands" "command → how it ended" "命令 → 结果" Append Command BySize;
    Errors "errors" "error → how it ended" "错误 → 结果" Append Problem BySize;
    Decisions "decisions" "decisions, and options that were rejected" "决策与放弃的方案" Append Words BySize;
    Learnings "learnings" "facts that were found out" "已查明的事实" Append Words BySize;
    Preferences "preferences" "what the user insists on" "用户强调的要求" Append Words Late;
    Notes "notes" "anything else that must not be lost" "其他不可丢失的内容" Append Words BySize;
    Files "files" "file: what was changed" "文件：修改内容" Count File BySize;
    Read "read" "file: what is in it" "文件：内容" Count File BySize;
    Open "open" "what is left to do" "待完成的事项" Newest Words BySize;
    State "state" "where the work stands" "当前进展" Newest Words BySize;
    Todos "todos" "state of the task list" "任务列表状态" Newest Words BySize;
    Lines "lines" "names, paths, numbers and lines that will be needed again" "之后还会用到的名称、路径、数字和代码行" Anew Lines BySize;
    LeftOut "left_out" "what this summary leaves out" "本摘要省略的内容" Anew Words BySize;
}

impl Slot {
    /// The slot of this name.
    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|slot| slot.name() == name)
    }

    /// All slots that a later summary treats so.
    pub(crate) fn that(inherit: Inherit) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |slot| slot.inherit() == inherit)
    }

    pub(crate) fn name(self) -> &'static str {
        self.row().name
    }

    /// What a model is told to write there.
    pub(crate) fn hint(self, language: Language) -> &'static str {
        match language {
            Language::English => self.row().english,
            Language::Chinese => self.row().chinese,
        }
    }

    pub(crate) fn inherit(self) -> Inherit {
        self.row().inherit
    }

    pub(crate) fn look(self) -> Look {
        self.row().look
    }

    pub(crate) fn yields(self) -> Yield {
        self.row().yields
    }
}

impl Serialize for Slot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Slot {
    /// A slot that this version does not know is a note.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Ok(Self::find(&name).unwrap_or(Self::Notes))
    }
}
