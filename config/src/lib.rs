//! Every setting of callbox, once: the file as written, the environment, the flags, and the resolved values.

mod settings;

pub use settings::*;
