use super::walk::{Direction, Place, query};
use super::{load, plan, resolve};
use crate::{db, segments};

/// What SQLite would do for a statement.
fn steps(statement: &str) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let conn = db::create(dir.path(), false).unwrap();
    let mut explain = conn
        .prepare(&format!("EXPLAIN QUERY PLAN {statement}"))
        .unwrap();
    let count = explain.parameter_count();
    let parameters = rusqlite::params_from_iter((0..count).map(|_| 1));
    explain
        .query_map(parameters, |row| row.get("detail"))
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

/// Every statement that looks for calls or messages follows an index, or a range of the primary key; none sorts.
#[test]
fn no_query_scans_the_log() {
    for direction in [Direction::Forward, Direction::Backward] {
        assert_eq!(
            steps(query(Place::All, direction)),
            ["SEARCH call USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]
        );
        assert_eq!(
            steps(query(Place::Outcome(1), direction)),
            ["SEARCH call USING COVERING INDEX call_outcome (outcome=? AND rowid>? AND rowid<?)"]
        );
    }
    let lists = [segments::TOOL_LIST, segments::SESSION_LIST];
    let sessions = [plan::OF_PRINCIPAL, plan::OF_TENANT, plan::OF_CLIENT];
    let others = [
        load::CALL,
        load::MESSAGES,
        resolve::CALLS,
        resolve::SESSIONS,
        plan::COUNT_ALL,
        plan::COUNT_OUTCOME,
    ];
    for statement in lists.into_iter().chain(sessions).chain(others) {
        let steps: Vec<_> = steps(statement)
            .into_iter()
            .filter(|step| !step.contains("subquery"))
            .collect();
        assert!(
            !steps.is_empty() && steps.iter().all(|step| step.starts_with("SEARCH ")),
            "{steps:?}: {statement}"
        );
    }
}
