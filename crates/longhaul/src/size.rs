//! How large things are and what they cost: tokens and how they are counted, what usage teaches,
//! models with their windows and prices, and the limits that follow.

pub(crate) mod budget;
pub(crate) mod calibration;
pub(crate) mod cost;
pub(crate) mod image;
pub(crate) mod meter;
pub(crate) mod models;
pub(crate) mod tokenizer;
pub(crate) mod tokens;
pub(crate) mod usage;

pub use budget::{Budget, Shares};
pub use calibration::Calibration;
pub use cost::{Cost, Tally};
pub use image::{ImageRule, size_of as image_size};
pub use meter::{Measure, Meter};
pub use models::{CacheKind, CacheRule, MatchedBy, Model, Models, ModelsError, Price, ThinkingOff};
pub use tokenizer::{TextCount, Vocabulary};
pub use tokens::{Count, CountKind, Tokens};
pub use usage::{Billed, Charged, Usage};
