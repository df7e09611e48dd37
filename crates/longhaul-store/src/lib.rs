//! Keeps Longhaul sessions: journals, content by hash, what was learnt, and search over what was said.
//!
//! [`Store`] is what a store does. [`SqliteStore`] does it with one file, [`PostgresStore`] with a schema of a
//! database that many machines may share; [`open`] takes the path or the URL. A [`Keeper`] is what a host
//! calls after each step.
//!
//! ```
//! use std::sync::Arc;
//!
//! use longhaul::{Message, Models, Profile, Session};
//! use longhaul_store::{About, Keeper, SqliteStore};
//!
//! let folder = tempfile::tempdir()?;
//! let store = Arc::new(SqliteStore::open(folder.path().join("sessions.db"))?);
//!
//! let mut session = Session::new(Profile::longhaul(), Models::builtin().find("gpt-4o").clone());
//! let mut keeper = Keeper::create(store.clone(), &About::default(), &session)?;
//! session.push(Message::user("Why does the build fail?"));
//! keeper.save(&session)?;
//!
//! let (_, loaded) = Keeper::open(store, keeper.id(), Profile::longhaul())?;
//! assert_eq!(loaded.log().messages(), session.log().messages());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | look for | in |
//! |---|---|
//! | what every store does, and its values | `store`, `error` |
//! | what a host calls | `keeper` |
//! | where a store is | `place` |
//! | which sessions go by themselves | `retention` |
//! | which sessions can give an original back | `originals` |
//! | texts as they are stored, and entries out of them | `packing`, `unpacking` |
//! | what goes into rows of either database | `rows` |
//! | words that can be found, snippets, and which hits are given | `words`, `finding` |
//! | indexing while nobody waits | `background` |
//! | one file with everything in it | `sqlite` |
//! | a schema of a database | `postgres` |

#![forbid(unsafe_code)]

mod background;
mod error;
mod export;
mod fault;
mod finding;
mod keeper;
mod originals;
mod packing;
mod place;
mod postgres;
mod retention;
mod rows;
mod sqlite;
mod store;
mod unpacking;
mod words;

pub use error::StoreError;
pub use keeper::{Keeper, Kept};
pub use place::{MEMORY, is_server, open, open_with};
pub use postgres::PostgresStore;
pub use sqlite::{Salvaged, SqliteStore, salvage};
pub use store::{
    About, Alike, BadSessionId, Filter, Form, Hit, Holders, Meta, Patience, Pruned, Retention, SessionId,
    Store, Stored, UpstreamLimit, UpstreamRefusal,
};
