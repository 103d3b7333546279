//! The ground: a square of cells, and where a point of it lies.

/// A point or a direction, in cells.
pub type Vector = [f32; 2];

/// A square of `side` × `side` cells. Everything in the world happens inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terrain {
    side: u32,
}

impl Terrain {
    /// Ground for so many ants: about two cells for each, at least 64 × 64.
    pub fn for_ants(ants: u32) -> Self {
        let side = (f64::from(ants) * 2.0).sqrt().ceil() as u32;
        Self { side: side.max(64).next_multiple_of(32) }
    }

    /// Cells along one side.
    pub fn side(self) -> u32 {
        self.side
    }

    /// Number of cells.
    pub fn cell_count(self) -> usize {
        (self.side * self.side) as usize
    }

    /// The middle, where the nest is.
    pub fn centre(self) -> Vector {
        [self.side as f32 / 2.0; 2]
    }

    /// The cell that a point lies in; points outside belong to the nearest cell.
    pub fn cell_of(self, [x, y]: Vector) -> usize {
        // `as` saturates and takes NaN to 0, so any point has a cell.
        let last = self.side - 1;
        let (column, row) = ((x as u32).min(last), (y as u32).min(last));
        (row * self.side + column) as usize
    }

    /// Is the point on the ground?
    pub fn contains(self, point: Vector) -> bool {
        let side = self.side as f32;
        point.iter().all(|&at| (0.0..side).contains(&at))
    }

    /// The point moved onto the ground.
    pub fn clamp(self, point: Vector) -> Vector {
        // The largest float below `side`: the far edge itself would already be the next cell.
        let limit = (self.side as f32).next_down();
        point.map(|at| at.clamp(0.0, limit))
    }

    /// Every cell whose centre lies within `radius` of a point.
    pub fn disc(self, centre: Vector, radius: f32) -> impl Iterator<Item = usize> {
        let first = centre.map(|at| (at - radius).max(0.0) as u32);
        let last = centre.map(|at| ((at + radius).max(0.0) as u32).min(self.side - 1));
        let cells =
            (first[1]..=last[1]).flat_map(move |row| (first[0]..=last[0]).map(move |column| (column, row)));
        cells
            .filter(move |&(column, row)| {
                distance_squared([column as f32 + 0.5, row as f32 + 0.5], centre) <= radius * radius
            })
            .map(move |(column, row)| (row * self.side + column) as usize)
    }
}

/// Square of the distance between two points.
pub fn distance_squared(a: Vector, b: Vector) -> f32 {
    let [dx, dy] = [a[0] - b[0], a[1] - b[1]];
    dx * dx + dy * dy
}

/// A direction turned by an angle that is given as (cosine, sine).
///
/// The simulation only adds, multiplies, divides and takes square roots. IEEE 754 fixes the results of all four, so a
/// world is the same on every machine; a library's sine would not be.
pub fn turn([x, y]: Vector, (cos, sin): (f32, f32)) -> Vector {
    [x * cos - y * sin, x * sin + y * cos]
}

/// A vector of length 1 in the same direction; east if there is no direction.
pub fn unit([x, y]: Vector) -> Vector {
    let length = (x * x + y * y).sqrt();
    if length > 0.0 { [x / length, y / length] } else { [1.0, 0.0] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_a_cell() {
        let terrain = Terrain::for_ants(1);
        assert_eq!(terrain.side(), 64);
        assert_eq!(terrain.cell_of([0.0, 0.0]), 0);
        assert_eq!(terrain.cell_of([1.5, 2.5]), 2 * 64 + 1);
        for wild in [f32::NAN, f32::INFINITY, -1.0, 64.0] {
            assert!(terrain.cell_of([wild, wild]) < terrain.cell_count());
        }
        assert_eq!(terrain.cell_of(terrain.clamp([1e9, 1e9])), terrain.cell_count() - 1);
    }

    #[test]
    fn a_disc_is_what_its_radius_reaches() {
        let terrain = Terrain::for_ants(1);
        let near = |cell: &usize| {
            let centre = [(cell % 64) as f32 + 0.5, (cell / 64) as f32 + 0.5];
            distance_squared(centre, [3.0, 60.5]) <= 5.5 * 5.5
        };
        let expected: Vec<_> = (0..terrain.cell_count()).filter(near).collect();
        assert_eq!(terrain.disc([3.0, 60.5], 5.5).collect::<Vec<_>>(), expected);
    }
}
