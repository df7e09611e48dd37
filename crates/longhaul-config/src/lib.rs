//! Longhaul's settings and profiles, so that command line, agent, gateway and bindings read the
//! same `longhaul.toml`.
//!
//! Settings come in layers, the later winning: what is built in, the user's file, the project's
//! file, the environment, flags. [`Layers`] are these as text; [`Config::read`] interprets them
//! and touches nothing outside. [`Config::load`] looks in the usual places first.
//!
//! ```
//! use longhaul::{Models, Session};
//! use longhaul_config::{Config, Layers};
//!
//! let layers = Layers::default()
//!     .file("longhaul.toml", "profile = \"mine\"\n[profiles.mine]\nbase = \"archive\"\ntrigger = 60\n")
//!     .variables([("LONGHAUL_PROFILES_MINE_TRIGGER", "65")])
//!     .flag("window", "64000");
//! let config = Config::read(&layers)?;
//!
//! let profile = config.profile(config.profile_name())?;
//! assert_eq!(profile.shares.trigger, 65);
//! let model = Models::builtin().find("claude-sonnet-4-5").clone();
//! let session = Session::new(profile, model).with_window(config.window());
//! # assert_eq!(session.budget().window, longhaul::Tokens(64_000));
//!
//! // What cannot be read is said with its place and the nearest name.
//! let error = Config::read(&Layers::default().file("longhaul.toml", "windw = 5")).unwrap_err();
//! assert_eq!(error.to_string(), "longhaul.toml: line 1: there is no setting `windw`; is `window` meant?");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod agent_settings;
mod config;
mod error;
mod layers;
mod nearest;
mod own_profiles;
mod password;
mod places;
mod profile_settings;
mod setting;
mod settings_file;
mod size;
mod value;

pub use agent_settings::{AgentSettings, IgnoredSettings};
pub use config::{Config, GatewaySettings, SummariserSettings};
pub use error::{ConfigError, NoSuchProfile};
pub use layers::Layers;
pub use nearest::{meant, nearest};
pub use password::without_password;
pub use setting::{Origin, Setting};
pub use settings_file::{Owner, SettingsFile};
pub use size::{size_of, tokens_of};
pub use value::{ValueError, ValueKind, rules_in};
