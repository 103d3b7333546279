//! The nearest known word to a mistyped one.

/// The candidate with the smallest edit distance to `word`, ignoring ASCII case, if it is near enough to be what was
/// meant: at most a third of the word, and at least one edit. A candidate that begins with the word also counts.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = folded(word);
    if wanted.is_empty() {
        return None;
    }
    let limit = (wanted.len() / 3).max(1);
    let score = |candidate: &'a str| {
        let known = folded(candidate);
        if wanted.len() >= 3 && known.starts_with(&wanted) {
            return Some((1, candidate));
        }
        // Words of very different lengths cannot be near; skipping them keeps long inputs cheap.
        if known.len().abs_diff(wanted.len()) > limit {
            return None;
        }
        let distance = edit_distance(&wanted, &known);
        (distance <= limit).then_some((distance, candidate))
    };
    candidates
        .into_iter()
        .filter_map(score)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn folded(word: &str) -> Vec<char> {
    word.chars().map(|c| c.to_ascii_lowercase()).collect()
}

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &to) in b.iter().enumerate() {
            let replace = last[j] + usize::from(from != to);
            let mut best = replace.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && from == b[j - 1] && a[i - 1] == to {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let known = ["kind", "thread", "tick", "dur"];
        assert_eq!(nearest("tread", known), Some("thread"));
        assert_eq!(nearest("KINd", known), Some("kind"));
        assert_eq!(nearest("tcik", known), Some("tick"));
        assert_eq!(nearest("elephant", known), None);
        assert_eq!(nearest("", known.into_iter().chain(["k"])), None, "nothing was typed");
    }

    #[test]
    fn a_prefix_counts_as_near() {
        assert_eq!(nearest("Trans", ["TransactionCommit"]), Some("TransactionCommit"));
    }
}
