//! The house keeps its shape: which crate may use which, and what must never be linked.

use std::collections::BTreeSet;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// Arrows that exist, from user to used. A new one is a decision: change the design first.
const ALLOWED: &[(&str, &[&str])] = &[
    ("callbox-wire", &[]),
    ("callbox-config", &[]),
    ("callbox-net", &[]),
    ("callbox-stats", &[]),
    ("callbox-telemetry", &["callbox-net"]),
    ("callbox-store", &["callbox-wire"]),
    (
        "callbox-proxy",
        &[
            "callbox-wire",
            "callbox-store",
            "callbox-config",
            "callbox-net",
            "callbox-telemetry",
        ],
    ),
    (
        "callbox",
        &[
            "callbox-wire",
            "callbox-store",
            "callbox-config",
            "callbox-net",
            "callbox-telemetry",
            "callbox-proxy",
        ],
    ),
    ("callbox-testkit", &[]),
];

/// What a crate must not reach, even through others.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("callbox-wire", &["tokio", "hyper", "rusqlite", "rustls"]),
    ("callbox-store", &["tokio", "hyper", "rustls"]),
    (
        "callbox-net",
        &["rusqlite", "callbox-store", "callbox-wire"],
    ),
    ("callbox-config", &["tokio", "hyper", "rusqlite"]),
];

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .other_options(vec!["--locked".to_owned(), "--offline".to_owned()])
        .exec()
        .expect("cargo metadata")
}

fn normal(package: &Package) -> impl Iterator<Item = &str> {
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind == DependencyKind::Normal)
        .map(|dependency| dependency.name.as_str())
}

#[test]
fn arrows_between_rooms_are_those_of_the_design() {
    let metadata = metadata();
    let mut wrong = Vec::new();
    for package in metadata.workspace_packages() {
        let Some((_, allowed)) = ALLOWED
            .iter()
            .find(|(name, _)| *name == package.name.as_str())
        else {
            wrong.push(format!("{} is not in the list of rooms", package.name));
            continue;
        };
        for used in normal(package).filter(|name| name.starts_with("callbox")) {
            if !allowed.contains(&used) {
                wrong.push(format!("{} -> {used}", package.name));
            }
        }
    }
    assert!(wrong.is_empty(), "new arrows: {wrong:?}");
}

#[test]
fn rooms_do_not_reach_what_they_must_not() {
    let metadata = metadata();
    for (room, forbidden) in FORBIDDEN {
        let names = reached(&metadata, room);
        for name in *forbidden {
            assert!(!names.contains(*name), "{room} reaches {name}");
        }
    }
}

#[test]
fn there_is_one_tls_stack_and_one_provider() {
    // What cargo links, not what the lock file mentions: an optional dependency that is off stays in there.
    let tree = std::process::Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "--package",
            "callbox",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo tree");
    assert!(
        tree.status.success(),
        "{}",
        String::from_utf8_lossy(&tree.stderr)
    );
    let tree = String::from_utf8(tree.stdout).expect("text");
    let linked: BTreeSet<&str> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    for banned in ["openssl-sys", "native-tls", "ring", "rustls-pemfile"] {
        assert!(!linked.contains(banned), "{banned} is linked");
    }
    assert!(linked.contains("aws-lc-rs"));
}

/// Every package that a crate links, by name.
fn reached(metadata: &Metadata, crate_name: &str) -> BTreeSet<String> {
    let resolve = metadata.resolve.as_ref().expect("a resolved graph");
    let start = metadata
        .packages
        .iter()
        .find(|package| package.name.as_str() == crate_name)
        .expect("a listed crate exists");
    let mut seen = BTreeSet::new();
    let mut todo = vec![start.id.clone()];
    while let Some(id) = todo.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        let node = resolve
            .nodes
            .iter()
            .find(|node| node.id == id)
            .expect("a node of each package");
        let linked = node.deps.iter().filter(|dependency| {
            dependency
                .dep_kinds
                .iter()
                .any(|kind| kind.kind == DependencyKind::Normal)
        });
        todo.extend(linked.map(|dependency| dependency.pkg.clone()));
    }
    seen.iter()
        .map(|id| metadata[id].name.to_string())
        .collect()
}
