//! Strings with a form: paths, durations, sizes. Here only their schema; `units` reads them, `shape` places paths.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $schema:tt) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
        #[serde(transparent)]
        pub(crate) struct $name(pub(crate) String);

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

text!(
    /// A path. In a file relative to the file's folder, else to the working directory.
    PathText,
    { "type": "string", "minLength": 1, "x-form": "path" }
);
text!(
    /// A length of time such as `30s`.
    DurationText,
    { "type": "string", "minLength": 2, "x-form": "duration" }
);
text!(
    /// A number of bytes such as `1MiB`.
    SizeText,
    { "type": "string", "pattern": "^[0-9]+ *([kKMGTPmgtp][iI]?)?[bB]$", "x-form": "size" }
);
