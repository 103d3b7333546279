//! "Did you mean …?"

/// The candidate with the fewest typing errors between it and `word`, letters in any case; `None` if all are too far
/// away to be meant.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.to_lowercase().chars().collect();
    let furthest = (word.len() / 4).clamp(1, 4);
    candidates
        .into_iter()
        .filter(|candidate| candidate.chars().count().abs_diff(word.len()) <= furthest)
        .filter_map(|candidate| Some((distance(&word, &candidate.to_lowercase(), furthest)?, candidate)))
        .min_by_key(|(errors, _)| *errors)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours needed to turn one text into the other
/// (optimal string alignment distance); `None` if more than `most`.
fn distance(left: &[char], right: &str, most: usize) -> Option<usize> {
    let right: Vec<char> = right.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, &l) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &r) in right.iter().enumerate() {
            let mut best = (last[j] + usize::from(l != r)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && l == right[j - 1] && left[i - 1] == r {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        // Two rows without a value in reach: no later one has any, since a swap looks back by two.
        if row.iter().chain(&last).all(|&errors| errors > most) {
            return None;
        }
        before_last = std::mem::replace(&mut last, row);
    }
    Some(last[right.len()]).filter(|&errors| errors <= most)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn d(left: &str, right: &str) -> usize {
        distance(&left.chars().collect::<Vec<_>>(), right, usize::MAX).unwrap()
    }

    #[test]
    fn distances() {
        assert_eq!(d("", ""), 0);
        assert_eq!(d("abc", ""), 3);
        assert_eq!(d("enabled", "enable"), 1);
        assert_eq!(d("enabeld", "enabled"), 1, "a swap of neighbours is one error");
        assert_eq!(d("kitten", "sitting"), 3);
    }

    proptest! {
        #[test]
        fn giving_up_early_changes_no_answer(left in "[ab]{0,8}", right in "[ab]{0,8}", most in 0usize..9) {
            let exact = d(&left, &right);
            let chars: Vec<char> = left.chars().collect();
            prop_assert_eq!(distance(&chars, &right, most), Some(exact).filter(|&exact| exact <= most));
        }
    }

    #[test]
    fn only_near_names_are_suggested() {
        let names = ["Enabled", "Trace", "Live"];
        assert_eq!(nearest("enabeld", names), Some("Enabled"));
        assert_eq!(nearest("Tracer", names), Some("Trace"));
        assert_eq!(nearest("Output", names), None);
        assert_eq!(nearest("", names), None);
    }
}
