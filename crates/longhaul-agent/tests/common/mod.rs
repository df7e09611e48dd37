//! A project in a folder of its own, and calls of its tools.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::Arc;

use longhaul_agent::{Code, Envelope, Project, Toolbox};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub struct Ground {
    folder: tempfile::TempDir,
    pub tools: Toolbox,
    pub project: Arc<Project>,
}

impl Ground {
    pub fn new() -> Self {
        Self::in_folder(tempfile::tempdir().unwrap())
    }

    /// A project in `root` there, and outputs of commands in `outputs`.
    pub fn in_folder(folder: tempfile::TempDir) -> Self {
        let (root, outputs) = (folder.path().join("root"), folder.path().join("outputs"));
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(&outputs).unwrap();
        let project = Arc::new(Project::new(root).unwrap().with_outputs(outputs).unwrap());
        Self { tools: Toolbox::files(&project), project, folder }
    }

    pub fn with(files: &[(&str, &str)]) -> Self {
        let ground = Self::new();
        for (name, content) in files {
            ground.write(name, content);
        }
        ground
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.project.root().join(name)
    }

    /// Beside the project.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn content(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub async fn run(&self, tool: &str, arguments: Value) -> Envelope {
        self.tools.run(tool, arguments, &CancellationToken::new()).await
    }

    /// What the model sees of a call that works.
    pub async fn says(&self, tool: &str, arguments: Value) -> String {
        let envelope = self.run(tool, arguments).await;
        assert!(!envelope.is_error(), "{envelope:?}");
        envelope.shown(longhaul_agent::Form::Plain)
    }

    /// Why a call does not work.
    pub async fn refuses(&self, tool: &str, arguments: Value) -> (Code, String) {
        let envelope = self.run(tool, arguments).await;
        let error = envelope.error.unwrap_or_else(|| panic!("it worked: {:?}", envelope.text));
        (error.code, error.message)
    }
}
