//! The files people start from.

use std::fs;
use std::path::Path;

use callbox_config::{Settings, Sources, documented_defaults, load};

use crate::desk::{CERTIFICATE, Desk, KEY};

#[test]
fn the_documented_file_holds_the_defaults() {
    let documented = Desk::file(&documented_defaults());
    let bare = Desk::bare().upstream("http://127.0.0.1:3001");
    let mut settings = documented.settings();
    assert_eq!(
        settings.data,
        documented.folder().join("callbox-data"),
        "beside the file"
    );
    settings.data = "callbox-data".into();
    assert_eq!(settings, bare.settings());
    assert_eq!(documented.warnings(), "");
}

/// Every key of the schema stands in the documented file, in force or commented out.
#[test]
fn the_documented_file_has_every_key() {
    let schema: serde_json::Value = serde_json::from_str(&callbox_config::schema()).unwrap();
    let file = documented_defaults();
    let commented: String = file
        .lines()
        .map(|line| line.strip_prefix('#').unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n");
    let lines: Vec<_> = commented.lines().collect();
    let mut count = 0;
    walk(&schema, "", &mut |path, schema| {
        count += 1;
        let name = path.rsplit('.').next().unwrap();
        let section = schema["type"] == "object" && schema.get("maxProperties").is_none();
        let present = if section {
            lines.contains(&format!("[{path}]").as_str())
        } else if path == "upstream" {
            lines.contains(&"[[upstream]]")
        } else {
            lines
                .iter()
                .any(|line| line.starts_with(&format!("{name} = ")))
        };
        assert!(present, "{path} is not in callbox.toml");
        assert!(
            callbox_config::reference().contains(path),
            "{path} is not in CONFIG.md"
        );
        if let Some(default) = schema
            .get("default")
            .filter(|_| !section && path != "upstream")
        {
            let default: toml::Value = toml::Value::try_from(default).unwrap();
            let line = file
                .lines()
                .find(|line| line.starts_with(&format!("{name} = ")));
            assert!(line.is_some(), "{path} = {default} is not in force");
        }
    });
    assert!(count > 60, "{count}");
}

fn walk(schema: &serde_json::Value, path: &str, visit: &mut dyn FnMut(&str, &serde_json::Value)) {
    let Some(properties) = schema["properties"].as_object() else {
        return;
    };
    for (name, schema) in properties {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        visit(&path, schema);
        if schema.get("maxProperties").is_none() {
            walk(schema, &path, visit);
        }
        if path == "upstream" {
            walk(&schema["items"], &path, visit);
        }
    }
}

/// Taking away the # in front of keys gives a file that works, too.
#[test]
fn the_documented_file_works_with_everything_switched_on() {
    let on: String = documented_defaults()
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with([' ', ':']) => rest.to_owned(),
            _ => line.to_owned(),
        })
        .collect::<Vec<_>>()
        .join("\n");
    let desk = Desk::file(
        &on.replace("http://", "https://")
            .replace("/run/secrets/", ""),
    );
    for name in ["callbox", "client-ca", "upstream-ca", "callbox-client"] {
        desk.put(&format!("tls/{name}.crt"), CERTIFICATE);
        desk.put(&format!("tls/{name}.key"), KEY);
    }
    desk.put("admin-token", "t");
    let settings = desk.settings();
    assert!(
        settings
            .listen
            .tls
            .is_some_and(|tls| tls.client_ca.is_some())
    );
    assert_eq!(settings.upstreams[0].path_prefix.as_deref(), Some("/crm"));
    assert!(settings.identity.tenant.is_some());
    assert!(settings.admin.token.is_some());
}

/// Each example is copied beside stand-ins for the files it names, and loaded.
#[test]
fn every_example_loads() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let desk = Desk::file(&text);
        for line in text.lines() {
            let Some(name) = line
                .split('"')
                .nth(1)
                .filter(|name| name.starts_with("tls/"))
            else {
                continue;
            };
            desk.put(
                name,
                if name.contains("key") {
                    KEY
                } else {
                    CERTIFICATE
                },
            );
        }
        desk.put("secrets/admin-token", "t\n");
        let loaded = desk
            .load()
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(
            loaded.warnings.is_empty(),
            "{}: {:?}",
            path.display(),
            loaded.warnings
        );
        count += 1;
    }
    assert!(count >= 3);
}

#[test]
fn the_kept_documented_file_loads_where_it_stands() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("callbox.toml");
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    let loaded = load(&sources).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(loaded.settings, Settings::from_sources(&sources).unwrap());
}
