//! The JSON Schema, made from the raw types. Owns what is published for editors; `keys` reads the same schema for
//! everything else, so the two cannot disagree.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::raw;

/// The schema with our own annotations (`x-…`), without references and without null, which TOML does not have.
pub(crate) static ANNOTATED: LazyLock<Value> = LazyLock::new(|| {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema: Value = settings
        .into_generator()
        .into_root_schema_for::<raw::Config>()
        .into();
    tidy(&mut schema);
    schema
});

/// JSON Schema (2020-12) of `callbox.toml`, for editors and validators.
pub fn schema() -> String {
    let mut schema = ANNOTATED.clone();
    publish(&mut schema);
    if let Value::Object(root) = &mut schema {
        root.insert("title".to_owned(), "callbox.toml".into());
    }
    // The alternate form indents; writing a `Value` cannot fail.
    format!("{schema:#}\n")
}

/// Takes out the null type, which TOML does not have, and the line breaks of doc comments.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::String(doc)) = object.get_mut("description") {
                *doc = unwrapped(doc);
            }
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|name| name != "null");
                if let [one] = types.as_slice() {
                    let one = one.clone();
                    object.insert("type".to_owned(), one);
                }
            }
            if let Some(Value::Array(choices)) = object.get("anyOf") {
                let mut real = choices.iter().filter(|choice| choice["type"] != "null");
                if let (Some(Value::Object(one)), None) = (real.next(), real.next()) {
                    let one = one.clone();
                    object.remove("anyOf");
                    for (name, value) in one {
                        object.entry(name).or_insert(value);
                    }
                }
            }
            object.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// Takes out what only we understand, and defaults of whole sections, which repeat those of their keys.
fn publish(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            let section = object.get("type").is_some_and(|name| name == "object")
                && !object.contains_key("maxProperties");
            object.retain(|name, value| match name.as_str() {
                "default" => !(section && value.is_object()),
                // `uint` and the like are of schemars' own making.
                "format" => !value.is_string(),
                name => !name.starts_with("x-"),
            });
            object.values_mut().for_each(publish);
        }
        Value::Array(items) => items.iter_mut().for_each(publish),
        _ => {}
    }
}

/// Undoes the line breaks of doc comments; paragraphs stay apart.
fn unwrapped(doc: &str) -> String {
    let paragraphs = doc
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// A member that is an object, or an empty one.
pub(crate) fn object<'a>(schema: &'a Value, member: &str) -> &'a Map<String, Value> {
    static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    schema
        .get(member)
        .and_then(Value::as_object)
        .unwrap_or(&EMPTY)
}
