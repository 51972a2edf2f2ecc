//! The entry points for boxes, and the phases of a morph.

use crate::any::{Unshown, any};
use crate::collect::{Nodes, Weigh, collect};
use crate::colour::{ColourChoice, Matched};
use crate::error::MorphError;
use crate::link::{Home, Link, Movable, Placer};
use crate::nearness::Distances;
use crate::plan::{Operation, Plan, Settings, pages};
use crate::relocate::NewPlaces;
use crate::report::{Clock, Outcome, PhaseTimes, Report};
use crate::size::{extent_of_all, node_extent};
use crate::visit::{AnyLinks, Links, Visit};
use ccmodel::{CacheGeometry, Layout, Machine, NodeExtent, PageSize};

/// Lays the nodes below `root` out for the cache, in the layout that the model predicts to be the
/// best on this machine: [`Morph::new().run(root, traverse)`](Morph::run).
pub fn ccmorph<L, R, F>(root: &mut R, traverse: F) -> Result<Report, MorphError>
where
    L: Movable,
    R: Links<Link = L> + ?Sized,
    F: for<'n, 'v, 'w> FnMut(&'n mut L::Node, &'w mut Visit<'v, 'n, L>),
{
    Morph::new().run(root, traverse)
}

/// A morph with settings.
///
/// # Examples
/// ```
/// # #[global_allocator]
/// # static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();
/// use ccmorph::{Layout, Morph, Operation, TreeNode};
///
/// #[derive(TreeNode)]
/// struct Node {
///     key: u32,
///     #[child]
///     next: Option<Box<Node>>,
/// }
///
/// let mut list = None;
/// for key in 0..1000 {
///     list = Some(Box::new(Node { key, next: list }));
/// }
/// let report = Morph::new().operation(Operation::Walk).run(&mut list, Node::children)?;
/// assert_eq!((report.nodes, report.layout), (1000, Layout::Preorder));
/// assert!(report.near_after.same_64 > 700);
/// # Ok::<(), ccmorph::MorphError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "a morph does nothing before `run`"]
pub struct Morph<'m> {
    pub(crate) settings: Settings<'m>,
}

impl<'m> Morph<'m> {
    /// The layout chosen by the model, for this machine; no colours, no predictions, and `CcMalloc`
    /// as the global allocator of plain boxes.
    pub fn new() -> Morph<'m> {
        Morph::default()
    }

    /// Sets the layout; `None`, the default, leaves the choice to the model.
    ///
    /// The model takes [preorder](Layout::Preorder) for a [walk](Operation::Walk). Otherwise it
    /// takes what [`ccmodel::choose_layout`] chooses for searches:
    /// [depth-first](Layout::DepthFirst) order for lists, hash chains and most nodes above a block,
    /// and mostly [hierarchical](Layout::Hierarchical) for the rest. [`Report::basis`] says what
    /// the choice rests on. Where one operation reads a good part of a cache, predictions have too
    /// few misses, before and after alike: [`crowded_levels`](ccmodel::Prediction::crowded_levels)
    /// names the caches.
    pub fn layout(mut self, layout: impl Into<Option<Layout>>) -> Morph<'m> {
        self.settings.layout = layout.into();
        self
    }

    /// Sets what the program does with the structure. The layout, the
    /// [predictions](Morph::predict) and the report are then for this operation.
    ///
    /// Without it the layout is one for searches, and the report gives no verdict.
    pub fn operation(mut self, operation: Operation) -> Morph<'m> {
        self.settings.operation = Some(operation);
        self
    }

    /// Chooses and predicts for this machine instead of [`Machine::this`]. It must pass
    /// [`Machine::check`], as every machine does that was not changed by hand.
    pub fn machine(mut self, machine: &'m Machine) -> Morph<'m> {
        self.settings.machine = Some(machine);
        self
    }

    /// Chooses for nodes in pages of this size. By default, boxes of 8 MiB or more count as being
    /// in huge pages, and [slices](Morph::run_slice) in pages of 4 KiB: a slice does not tell which
    /// pages its allocator got.
    pub fn pages(mut self, pages: PageSize) -> Morph<'m> {
        self.settings.pages = Some(pages);
        self
    }

    /// Sets whether to predict the cost of an operation before and after. The default is not to. A
    /// prediction is O(n) and takes about as long as the rest of the morph.
    pub fn predict(mut self, predict: bool) -> Morph<'m> {
        self.settings.predict = predict;
        self
    }

    /// Sets whether weights are counts of accesses: an operation then counts at each node on its
    /// path, and not only where it ends, which is the default.
    pub fn weights_are_accesses(mut self, are: bool) -> Morph<'m> {
        self.settings.weights_are_accesses = are;
        self
    }

    /// Reserves `hot_share` (from 0 to 1) of the first-level cache for the first nodes in traversal
    /// order, or, with weights, for the most accessed ones: thesis, section 2.2.2.
    ///
    /// No other node of the structure maps to that part of the cache, so each page of the rest
    /// leaves the hot part free. It pays for a small part of a structure that is in constant use
    /// while the rest streams through the cache, and rarely for searches. [`Report::colour`] says
    /// what each level gains and loses.
    pub fn colour(mut self, hot_share: f64) -> Morph<'m> {
        self.settings.colour = Some(ColourChoice {
            geometry: None,
            hot_share,
        });
        self
    }

    /// As [`colour`](Morph::colour), for a cache with these sets, blocks and ways: the parameters
    /// of the thesis's figure 4-1. Ways above 1 MiB give [`MorphError::ColourWay`].
    ///
    /// Where a way is larger than a page, the gaps between colours are whole pages and cost no
    /// memory. Most machines do not choose the sets of such a cache by addresses that a program can
    /// control.
    pub fn colour_for(mut self, geometry: CacheGeometry, hot_share: f64) -> Morph<'m> {
        self.settings.colour = Some(ColourChoice {
            geometry: Some(geometry),
            hot_share,
        });
        self
    }

    /// Accepts global allocators other than [`CcMalloc`](ccmalloc::CcMalloc), which otherwise give
    /// [`MorphError::NotCcMalloc`].
    ///
    /// Nodes are then allocated in the order of the layout, and lie wherever the allocator puts
    /// them. [`Report::placed`] and [`Report::near_after`] tell the result.
    pub fn under_any_allocator(mut self) -> Morph<'m> {
        self.settings.any_allocator = true;
        self
    }

    /// Moves every node below `root` that `traverse` shows.
    ///
    /// `traverse` is called once for each node, parents before their children. It calls its
    /// argument for each field that holds [`Links`]: pass
    /// [`TreeNode::children`](crate::TreeNode::children), or a closure such as `|node, visit| {
    /// visit(&mut node.left); visit(&mut node.right); }`. Nodes that it hides stay where they are.
    ///
    /// Only the addresses of the nodes change. Each node stays a box of its own, which can be
    /// replaced, dropped or morphed again. Raw pointers to nodes dangle unless `traverse` shows
    /// them, by [`back`](crate::back). Types that must not move are excluded by [`Movable`]. Nodes
    /// of size zero stay; the report does not count them.
    ///
    /// Takes at most O(n log n) time and about three cache misses a node, most of which overlap.
    /// While it runs it needs memory for a second set of nodes and 28 to 40 bytes a node for lists
    /// ([`Report::lists_bytes`]); a link outside of the node that shows it takes 4 more, a pointer
    /// back 16, a weight 8 to 16. [Predictions](Morph::predict) double that. The stack does not
    /// grow with the structure. [Depth-first](Layout::DepthFirst) order is the cheapest.
    ///
    /// # Errors
    /// See [`MorphError`]. The structure is then as it was, as it is when `traverse` panics. Where
    /// there is no memory for other lists than those of nodes and pointers, the process ends, as
    /// when a `Vec` cannot grow.
    pub fn run<L, R, F>(&self, root: &mut R, mut traverse: F) -> Result<Report, MorphError>
    where
        L: Movable,
        R: Links<Link = L> + ?Sized,
        F: for<'n, 'v, 'w> FnMut(&'n mut L::Node, &'w mut Visit<'v, 'n, L>),
    {
        self.run_with(root, &mut traverse, None, false)
    }

    /// As [`run`](Morph::run), for a structure of nodes of any types, each of which shows its own
    /// children by [`AnyLinks`].
    ///
    /// The buffers of vectors move, too, and count as nodes. Boxes and buffers above 4096 bytes
    /// stay; what they own moves. Each node takes the room that it needs, without gaps, or with
    /// [colours](Morph::colour) the room of the largest.
    ///
    /// If the root is of one of the types, `run(&mut root, Node::children)` does the same. A node
    /// of another type has the weight or key of its owner. A node takes 36 bytes more for lists
    /// than in a structure of one type.
    pub fn run_any<A: AnyLinks + ?Sized>(&self, root: &mut A) -> Result<Report, MorphError> {
        self.run::<Box<Unshown>, _, _>(any(root), |_, _| {})
    }

    /// As [`run`](Morph::run), for operations that do not end at each node equally often.
    ///
    /// `weigh` returns how many operations end at a node, or [pass or end
    /// there](Morph::weights_are_accesses), in any unit, such as a count taken over a while. It is
    /// called once for each node, before `traverse`. Negative weights and NaN count as 0.
    /// [`Layout::Weighted`] is made for weights.
    pub fn run_weighted<L, R, F, W>(
        &self,
        root: &mut R,
        mut traverse: F,
        mut weigh: W,
    ) -> Result<Report, MorphError>
    where
        L: Movable,
        R: Links<Link = L> + ?Sized,
        F: for<'n, 'v, 'w> FnMut(&'n mut L::Node, &'w mut Visit<'v, 'n, L>),
        W: FnMut(&L::Node) -> f64,
    {
        self.run_with(root, &mut traverse, Some(&mut weigh), false)
    }

    /// As [`run`](Morph::run), but orders the nodes by their keys. Nodes with equal keys keep the
    /// order of the traversal.
    ///
    /// For structures whose order is not that of ownership, such as the list of an LRU cache whose
    /// entries a hash table owns: `tests/trials/lru_list.rs` in the repository is one. `key` is
    /// called once for each node, before `traverse`. The operation is a [walk](Operation::Walk) in
    /// this order, unless [another](Morph::operation) was set. [Layout](Morph::layout) and
    /// [colours](Morph::colour) are not used. O(n log n) comparisons.
    pub fn run_ordered_by<L, R, F, K, O>(
        &self,
        root: &mut R,
        mut traverse: F,
        mut key: K,
    ) -> Result<Report, MorphError>
    where
        L: Movable,
        R: Links<Link = L> + ?Sized,
        F: for<'n, 'v, 'w> FnMut(&'n mut L::Node, &'w mut Visit<'v, 'n, L>),
        K: FnMut(&L::Node) -> O,
        O: Ord,
    {
        // The weight of a node is the number of its key.
        let mut keys = Vec::new();
        let mut weigh = |node: &L::Node| {
            keys.push(key(node));
            (keys.len() - 1) as f64
        };
        let Some(mut nodes) = self.collect(root, &mut traverse, Some(&mut weigh))? else {
            return Ok(self.report_of_nothing::<L>());
        };
        let numbers = std::mem::take(&mut nodes.weights);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the number of a key, from above"
        )]
        let key_of = |v: u32| keys.get(numbers[v as usize] as usize);
        let mut order: Vec<u32> = (0..).take(numbers.len()).collect();
        order.sort_by(|&a, &b| key_of(a).cmp(&key_of(b)));
        // No code of the user's runs from here on.
        drop(keys);
        self.run_collected(nodes, order, false)
    }

    /// Morphs if the model predicts that it pays: an operation gets at least
    /// [`ccmodel::WORTHWHILE_SPEEDUP`] times faster, and `operations` of them save more time than
    /// the morph takes.
    ///
    /// For structures that keep changing: call it now and then with the number of operations
    /// expected until the next call. The unit is the operation that was [set](Morph::operation),
    /// else a search. The traversal and the prediction take about half the time of a morph.
    pub fn run_if_worthwhile<L, R, F>(
        &self,
        root: &mut R,
        mut traverse: F,
        operations: f64,
    ) -> Result<Outcome, MorphError>
    where
        L: Movable,
        R: Links<Link = L> + ?Sized,
        F: for<'n, 'v, 'w> FnMut(&'n mut L::Node, &'w mut Visit<'v, 'n, L>),
    {
        let Some(nodes) = self.collect(root, &mut traverse, None)? else {
            return Ok(Outcome::Empty);
        };
        let Some(node) = self.extent(&nodes)? else {
            return Ok(Outcome::Empty);
        };
        let (parents, addresses) = (&nodes.found().parents, nodes.addresses());
        let gain = Plan::gain(&self.settings, parents, &nodes.weights, addresses, node)?;
        if !gain.is_worthwhile(operations) {
            return Ok(Outcome::NotWorthwhile { gain });
        }
        let report = Box::new(self.run_collected(nodes, Vec::new(), false)?);
        Ok(Outcome::Morphed { report, gain })
    }

    /// Morphs; with `refuses`, as if there were no memory for new places, for tests.
    pub(crate) fn run_with<L, R, F>(
        &self,
        root: &mut R,
        traverse: &mut F,
        weigh: Option<Weigh<'_, L::Node>>,
        refuses: bool,
    ) -> Result<Report, MorphError>
    where
        L: Link,
        R: Links<Link = L> + ?Sized,
        F: for<'n, 'v, 'w> FnMut(&'n mut L::Node, &'w mut Visit<'v, 'n, L>),
    {
        match self.collect(root, traverse, weigh)? {
            Some(nodes) => self.run_collected(nodes, Vec::new(), refuses),
            None => Ok(self.report_of_nothing::<L>()),
        }
    }

    fn report_of_nothing<L: Link>(&self) -> Report {
        Report::of_nothing(self.settings.layout_of_nothing(), size_of::<L::Node>())
    }

    /// Collects all nodes, if any can move.
    fn collect<'a, L, R, F>(
        &self,
        root: &'a mut R,
        traverse: &mut F,
        weigh: Option<Weigh<'_, L::Node>>,
    ) -> Result<Option<Nodes<'a, L::Home>>, MorphError>
    where
        L: Link + 'a,
        R: Links<Link = L> + ?Sized,
        F: for<'n, 'v, 'w> FnMut(&'n mut L::Node, &'w mut Visit<'v, 'n, L>),
    {
        self.settings.check()?;
        if node_extent(std::alloc::Layout::new::<L::Node>())?.is_none() {
            return Ok(None);
        }
        collect(root, traverse, weigh)
    }

    /// Runs the phases after the collection. `order` names each node once, or is empty where the
    /// settings decide. Not generic over the type of the nodes.
    pub(crate) fn run_collected<H: Home>(
        &self,
        mut nodes: Nodes<'_, H>,
        order: Vec<u32>,
        refuses: bool,
    ) -> Result<Report, MorphError> {
        let mut times = PhaseTimes {
            traverse: nodes.time,
            ..PhaseTimes::default()
        };
        let mut clock = Clock::start();
        let Some(node) = self.extent(&nodes)? else {
            return Ok(Report::of_nothing(self.settings.layout_of_nothing(), 0));
        };
        let weights = std::mem::take(&mut nodes.weights);
        let parents = &nodes.found().parents;
        let mut plan = Plan::make(&self.settings, parents, weights, order, node)?;
        if nodes.are_of_kinds() {
            plan.pack(|v| nodes.layout_of(v));
        }
        let (room_bytes, span_bytes) = plan.extent_bytes();
        times.plan = clock.lap();

        let out_of_memory = MorphError::OutOfMemory { bytes: room_bytes };
        let home = nodes.home;
        let reserve = |bytes| if refuses { None } else { home.reserve(bytes) };
        let (places, huge_pages) = match plan.way_to_match() {
            None => {
                let bytes = usize::try_from(room_bytes).map_err(|_| out_of_memory)?;
                let placer = reserve(bytes).ok_or(out_of_memory)?;
                // SAFETY: the home made the placer.
                unsafe { self.allocate(&mut plan, nodes, placer, room_bytes) }?
            }
            Some(way_bytes) => {
                let placer = Matched::reserve(plan.placement(), node, way_bytes, reserve)
                    .ok_or(out_of_memory)?;
                // SAFETY: the home made the placer.
                unsafe { self.allocate(&mut plan, nodes, placer, room_bytes) }?
            }
        };
        times.allocate = clock.lap();

        let nodes = places.nodes();
        let (predicted_before, predicted_after) = plan.predictions(
            &self.settings,
            || nodes.addresses(),
            || (0..nodes.len()).map(|v| places.address(v)).collect(),
            pages(huge_pages),
        );
        let mut report = Report {
            nodes: nodes.len() - nodes.staying(),
            span_bytes,
            lists_bytes: nodes.list_bytes() + places.list_bytes() + plan.list_bytes,
            placed: places.as_asked(),
            operation: plan.operation,
            colour: plan.colour_report(&self.settings, huge_pages),
            predicted_before,
            predicted_after,
            huge_pages,
            ranking: std::mem::take(&mut plan.ranking),
            ranked_for: plan.ranked_for,
            basis: plan.basis,
            ..Report::of_nothing(plan.layout, nodes.node_bytes(node))
        };
        let walked = plan.walk().map(|walk| {
            let before = Distances::along(walk, |v| nodes.address(v));
            (before, Distances::along(walk, |v| places.address(v)))
        });
        drop(plan);
        times.plan += clock.lap();
        let moved = places.move_in();
        let (before, after) = walked.unwrap_or(moved);
        times.relocate = clock.lap();
        report.edges = before.count();
        (report.near_before, report.near_after) = (before.nearness(), after.nearness());
        report.times = times;
        Ok(report)
    }

    /// The extent to place nodes by: their size, the mean of several types, or with colours the
    /// largest. `None` where no node can move.
    fn extent<H: Home>(&self, nodes: &Nodes<'_, H>) -> Result<Option<NodeExtent>, MorphError> {
        if nodes.are_of_kinds() {
            let is_largest = self.settings.colour.is_some();
            return Ok(extent_of_all(nodes.layouts(), is_largest));
        }
        node_extent(nodes.layout())
    }

    /// New places for all nodes, and whether huge pages were asked for under them.
    ///
    /// # Safety
    /// `placer` allocates what `nodes.home` frees.
    unsafe fn allocate<'a, H: Home>(
        &self,
        plan: &mut Plan,
        nodes: Nodes<'a, H>,
        mut placer: impl Placer,
        room_bytes: u64,
    ) -> Result<(NewPlaces<'a, H>, bool), MorphError> {
        let huge_pages = !plan.has_page_gaps() && advise_huge_pages(&placer, room_bytes);
        let (room, stride_bytes) = ((plan.take_offsets(), room_bytes), plan.node.stride_bytes());
        let accepts = self.settings.any_allocator;
        // SAFETY: the caller promises that `placer` allocates what the nodes' home frees.
        let places =
            unsafe { NewPlaces::allocate(nodes, room, stride_bytes, &mut placer, accepts) };
        Ok((places?, huge_pages))
    }
}

/// Asks for huge pages for the chunks under the places. Returns whether the system agreed for any.
///
/// The allocator asks by itself for large heaps; this covers chunks that it got before.
fn advise_huge_pages(placer: &impl Placer, span_bytes: u64) -> bool {
    let Ok(span_bytes) = usize::try_from(span_bytes) else {
        return false;
    };
    if span_bytes < crate::plan::HUGE_FROM_BYTES {
        return false;
    }
    let huge_bytes = usize::try_from(PageSize::Huge2M.bytes()).unwrap_or(usize::MAX);
    let mut chunks: Vec<*const u8> = (0..span_bytes)
        .step_by(ccmalloc::Region::SEGMENT_BYTES)
        .map(|offset| {
            let address = placer.address(offset).cast_const();
            address.map_addr(|address| address & !(huge_bytes - 1))
        })
        .collect();
    chunks.dedup();
    // Chunks that follow one another are one piece of advice.
    let mut granted = false;
    for run in chunks.chunk_by(|chunk, next| next.addr().wrapping_sub(chunk.addr()) == huge_bytes) {
        granted |= ccmalloc::advise_huge_pages(run[0], run.len() * huge_bytes);
    }
    granted
}
