//! From registry names to Rust names.

/// `TransactionCommit`, `walLsn` to `transaction_commit`, `wal_lsn`.
pub(super) fn snake(name: &str) -> String {
    // Words of the field whose capitals are not word boundaries.
    let name = name.replace("BTree", "Btree").replace("RTree", "Rtree").replace("UoW", "Uow");
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(at + 1);
        let starts_word = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                !before.is_ascii_uppercase() || after.is_some_and(char::is_ascii_lowercase)
            });
        if starts_word {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// `TransactionCommit` to `TRANSACTION_COMMIT`.
pub(super) fn screaming(name: &str) -> String {
    snake(name).to_ascii_uppercase()
}

/// A field name as a Rust identifier.
pub(super) fn field(name: &str) -> String {
    match name {
        "type" => "gc_type".into(),
        "nameUtf8" => "name".into(),
        name => snake(name),
    }
}

/// A Rust string literal.
pub(super) fn literal(text: &str) -> String {
    format!("{text:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_at_case_changes_and_after_acronyms() {
        assert_eq!(snake("TransactionCommit"), "transaction_commit");
        assert_eq!(snake("trackP99Ms"), "track_p99_ms");
        assert_eq!(snake("entityPK"), "entity_pk");
        assert_eq!(screaming("ForGCPrep"), "FOR_GC_PREP");
        assert_eq!(screaming("DataIndexBTreeNodeCow"), "DATA_INDEX_BTREE_NODE_COW");
        assert_eq!(screaming("SpatialRTreeInsert"), "SPATIAL_RTREE_INSERT");
        assert_eq!(screaming("RuntimePhaseUoWCreate"), "RUNTIME_PHASE_UOW_CREATE");
    }
}
