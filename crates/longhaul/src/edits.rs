//! Compressions: what an edit is, the ledger of all that were made, the guard that lets them
//! through or refuses them, and the archive that gives back what they took out.

pub(crate) mod archive;
pub(crate) mod edit;
pub(crate) mod guard;
pub(crate) mod ledger;
pub(crate) mod unbound;
pub(crate) mod voice;

pub use archive::{Archive, BadHandle, Handle, MemoryArchive, Original, RecallError, RecallPart, recall};
pub use edit::{Edit, EditId, EditKind, EditPrice, EditText, Limit, LostWith, Placement, Why};
pub use guard::{Audited, Refusal, Rule, Violation};
pub use ledger::{Ledger, LedgerError};
pub use unbound::{Excerpt, LostThinking, Unbound};
pub use voice::Voice;
