//! A small picture of the world for a terminal: what a client would be sent. Nothing of the world depends on it, so
//! these systems may be thinned out or left out when the machine cannot keep up.

use std::sync::Mutex;

use atomic_refcell::AtomicRefCell;

use crate::world::World;

/// Width of the picture, in characters.
pub const COLUMNS: usize = 64;
/// Height of the picture, in lines.
pub const ROWS: usize = 24;

/// Brightness of every character of the picture, for one thing that is shown. Rows are filled side by side.
#[derive(Debug)]
pub struct Layer {
    rows: Vec<AtomicRefCell<[u32; COLUMNS]>>,
}

impl Layer {
    fn new() -> Self {
        Self { rows: (0..ROWS).map(|_| AtomicRefCell::new([0; COLUMNS])).collect() }
    }

    /// Fills one row: each character shows the largest of its cells.
    pub fn gather(&self, world: &World, row: usize, value_of: impl Fn(usize) -> u32) {
        let side = world.terrain.side() as usize;
        let cells_of = |index: usize, count: usize| index * side / count..(index + 1) * side / count;
        let mut line = self.rows[row].borrow_mut();
        for (column, brightest) in line.iter_mut().enumerate() {
            let block =
                cells_of(row, ROWS).flat_map(|y| cells_of(column, COLUMNS).map(move |x| y * side + x));
            *brightest = block.map(&value_of).max().unwrap_or(0);
        }
    }
}

/// The layers of the picture, and the last picture that was drawn of them.
#[derive(Debug)]
pub struct View {
    /// Scent of food.
    pub food: Layer,
    /// Scent of danger.
    pub alarm: Layer,
    /// Ants.
    pub traffic: Layer,
    picture: Mutex<String>,
}

impl Default for View {
    fn default() -> Self {
        Self { food: Layer::new(), alarm: Layer::new(), traffic: Layer::new(), picture: Mutex::default() }
    }
}

impl View {
    /// Draws the layers: spiders' scent over ants over trails, and the nest in the middle.
    pub fn draw(&self) {
        let mut picture = String::with_capacity(ROWS * (COLUMNS + 1));
        for row in 0..ROWS {
            let (food, alarm) = (self.food.rows[row].borrow(), self.alarm.rows[row].borrow());
            let traffic = self.traffic.rows[row].borrow();
            picture.extend((0..COLUMNS).map(|column| match (alarm[column], traffic[column], food[column]) {
                _ if row == ROWS / 2 && column == COLUMNS / 2 => 'O',
                (ALARMING.., ..) => '!',
                (_, 9.., _) => '#',
                (_, 3.., _) => '+',
                (_, _, TRAIL..) => ':',
                (_, 1.., _) => '.',
                _ => ' ',
            }));
            picture.push('\n');
        }
        if let Ok(mut shown) = self.picture.lock() {
            *shown = picture;
        }
    }

    /// The last picture: 24 lines of 64 characters, or nothing before the first.
    pub fn picture(&self) -> String {
        self.picture.lock().map(|picture| picture.clone()).unwrap_or_default()
    }
}

/// Scent of danger that is worth a mark.
const ALARMING: u32 = 1 << 13;
/// Scent of food that is worth a mark.
const TRAIL: u32 = 1 << 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_shows_the_nest_and_the_ants_around_it() {
        let world = World::new(100, 1);
        let view = View::default();
        let beside = world.terrain.cell_of([world.terrain.centre()[0] + 8.0, world.terrain.centre()[1]]);
        world.traffic.add(beside);
        for row in 0..ROWS {
            view.traffic.gather(&world, row, |cell| world.traffic.count(cell));
        }
        view.draw();
        let picture = view.picture();
        let lines: Vec<_> = picture.lines().collect();
        assert_eq!((lines.len(), lines[0].len()), (ROWS, COLUMNS));
        assert_eq!(&lines[ROWS / 2][COLUMNS / 2..COLUMNS / 2 + 9], "O       .");
    }
}
