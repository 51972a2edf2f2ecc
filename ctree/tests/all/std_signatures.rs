//! Made by `tests/all/std_surface`, and not to be edited: calls each stable method of the standard
//! library's collections, needs each trait.

mod map {
    use std::borrow::Borrow;
    use std::fmt::{self, Debug};
    use std::hash::Hash;
    use std::iter::FusedIterator;
    use std::marker::PhantomData;
    use std::ops::{BitAnd, BitOr, BitXor, Index, RangeBounds, Sub};

    use allocator_api2::alloc::Allocator;
    use ctree::map::{Entry, ExtractIf, IntoIter, IntoKeys, IntoValues, Iter, IterMut, Keys, OccupiedEntry, Range, RangeMut, VacantEntry, Values, ValuesMut};
    use ctree::CTreeMap as BTreeMap;

    fn needs1<K, V, A: Allocator + Clone>(_: PhantomData<(BTreeMap<K, V, A>,)>) where A: core::panic::UnwindSafe, K: core::panic::RefUnwindSafe, V: core::panic::RefUnwindSafe, BTreeMap<K, V, A>: core::panic::UnwindSafe {}
    fn has1<K, V, A: Allocator + Clone>(subject: PhantomData<(BTreeMap<K, V, A>,)>) where A: core::panic::UnwindSafe, K: core::panic::RefUnwindSafe, V: core::panic::RefUnwindSafe {
        needs1::<K, V, A>(subject);
    }

    fn needs2<K: Clone, V: Clone, A: Allocator + Clone>(_: PhantomData<(BTreeMap<K, V, A>,)>) where BTreeMap<K, V, A>: Clone {}
    fn has2<K: Clone, V: Clone, A: Allocator + Clone>(subject: PhantomData<(BTreeMap<K, V, A>,)>) {
        needs2::<K, V, A>(subject);
    }

    fn needs3<'e0, K: fmt::Debug, V: fmt::Debug>(_: PhantomData<(Iter<'e0, K, V>,)>) where Iter<'e0, K, V>: fmt::Debug {}
    fn has3<'e0, K: fmt::Debug, V: fmt::Debug>(subject: PhantomData<(Iter<'e0, K, V>,)>) {
        needs3::<K, V>(subject);
    }

    fn needs4<'a, K: 'a, V: 'a>(_: PhantomData<(Iter<'a, K, V>,)>) where Iter<'a, K, V>: Default {}
    fn has4<'a, K: 'a, V: 'a>(subject: PhantomData<(Iter<'a, K, V>,)>) {
        needs4::<K, V>(subject);
    }

    fn needs5<'e0, K: fmt::Debug, V: fmt::Debug>(_: PhantomData<(IterMut<'e0, K, V>,)>) where IterMut<'e0, K, V>: fmt::Debug {}
    fn has5<'e0, K: fmt::Debug, V: fmt::Debug>(subject: PhantomData<(IterMut<'e0, K, V>,)>) {
        needs5::<K, V>(subject);
    }

    fn needs6<'a, K: 'a, V: 'a>(_: PhantomData<(IterMut<'a, K, V>,)>) where IterMut<'a, K, V>: Default {}
    fn has6<'a, K: 'a, V: 'a>(subject: PhantomData<(IterMut<'a, K, V>,)>) {
        needs6::<K, V>(subject);
    }

    fn needs7<K: Debug, V: Debug, A: Allocator + Clone>(_: PhantomData<(IntoIter<K, V, A>,)>) where IntoIter<K, V, A>: Debug {}
    fn has7<K: Debug, V: Debug, A: Allocator + Clone>(subject: PhantomData<(IntoIter<K, V, A>,)>) {
        needs7::<K, V, A>(subject);
    }

    fn needs8<K, V, A>(_: PhantomData<(IntoIter<K, V, A>,)>) where A: Allocator + Default + Clone, IntoIter<K, V, A>: Default {}
    fn has8<K, V, A>(subject: PhantomData<(IntoIter<K, V, A>,)>) where A: Allocator + Default + Clone {
        needs8::<K, V, A>(subject);
    }

    fn needs9<'e0, K: fmt::Debug, V>(_: PhantomData<(Keys<'e0, K, V>,)>) where Keys<'e0, K, V>: fmt::Debug {}
    fn has9<'e0, K: fmt::Debug, V>(subject: PhantomData<(Keys<'e0, K, V>,)>) {
        needs9::<K, V>(subject);
    }

    fn needs10<'e0, K, V: fmt::Debug>(_: PhantomData<(Values<'e0, K, V>,)>) where Values<'e0, K, V>: fmt::Debug {}
    fn has10<'e0, K, V: fmt::Debug>(subject: PhantomData<(Values<'e0, K, V>,)>) {
        needs10::<K, V>(subject);
    }

    fn needs11<'e0, K, V: fmt::Debug>(_: PhantomData<(ValuesMut<'e0, K, V>,)>) where ValuesMut<'e0, K, V>: fmt::Debug {}
    fn has11<'e0, K, V: fmt::Debug>(subject: PhantomData<(ValuesMut<'e0, K, V>,)>) {
        needs11::<K, V>(subject);
    }

    fn needs12<K: fmt::Debug, V, A: Allocator + Clone>(_: PhantomData<(IntoKeys<K, V, A>,)>) where IntoKeys<K, V, A>: fmt::Debug {}
    fn has12<K: fmt::Debug, V, A: Allocator + Clone>(subject: PhantomData<(IntoKeys<K, V, A>,)>) {
        needs12::<K, V, A>(subject);
    }

    fn needs13<K, V: fmt::Debug, A: Allocator + Clone>(_: PhantomData<(IntoValues<K, V, A>,)>) where IntoValues<K, V, A>: fmt::Debug {}
    fn has13<K, V: fmt::Debug, A: Allocator + Clone>(subject: PhantomData<(IntoValues<K, V, A>,)>) {
        needs13::<K, V, A>(subject);
    }

    fn needs14<'e0, K: fmt::Debug, V: fmt::Debug>(_: PhantomData<(Range<'e0, K, V>,)>) where Range<'e0, K, V>: fmt::Debug {}
    fn has14<'e0, K: fmt::Debug, V: fmt::Debug>(subject: PhantomData<(Range<'e0, K, V>,)>) {
        needs14::<K, V>(subject);
    }

    fn needs15<'e0, K: fmt::Debug, V: fmt::Debug>(_: PhantomData<(RangeMut<'e0, K, V>,)>) where RangeMut<'e0, K, V>: fmt::Debug {}
    fn has15<'e0, K: fmt::Debug, V: fmt::Debug>(subject: PhantomData<(RangeMut<'e0, K, V>,)>) {
        needs15::<K, V>(subject);
    }

    trait Methods16<K, V>: Sized {
        fn std_new() -> BTreeMap<K, V>;
    }
    impl<K, V> Methods16<K, V> for BTreeMap<K, V> {
        fn std_new() -> BTreeMap<K, V> { <BTreeMap<K, V>>::new() }
    }
    const fn const16_new<K, V>() -> BTreeMap<K, V> { <BTreeMap<K, V>>::new() }

    trait Methods17<K, V, A: Allocator + Clone>: Sized {
        fn std_clear(&mut self);
        fn std_get<Q: ?Sized>(&self, argument1: &Q) -> Option<&V> where K: Borrow<Q> + Ord, Q: Ord;
        fn std_get_key_value<Q: ?Sized>(&self, argument1: &Q) -> Option<(&K, &V)> where K: Borrow<Q> + Ord, Q: Ord;
        fn std_first_key_value(&self) -> Option<(&K, &V)> where K: Ord;
        fn std_first_entry(&mut self) -> Option<OccupiedEntry<'_, K, V, A>> where K: Ord;
        fn std_pop_first(&mut self) -> Option<(K, V)> where K: Ord;
        fn std_last_key_value(&self) -> Option<(&K, &V)> where K: Ord;
        fn std_last_entry(&mut self) -> Option<OccupiedEntry<'_, K, V, A>> where K: Ord;
        fn std_pop_last(&mut self) -> Option<(K, V)> where K: Ord;
        fn std_contains_key<Q: ?Sized>(&self, argument1: &Q) -> bool where K: Borrow<Q> + Ord, Q: Ord;
        fn std_get_mut<Q: ?Sized>(&mut self, argument1: &Q) -> Option<&mut V> where K: Borrow<Q> + Ord, Q: Ord;
        fn std_insert(&mut self, argument1: K, argument2: V) -> Option<V> where K: Ord;
        fn std_remove<Q: ?Sized>(&mut self, argument1: &Q) -> Option<V> where K: Borrow<Q> + Ord, Q: Ord;
        fn std_remove_entry<Q: ?Sized>(&mut self, argument1: &Q) -> Option<(K, V)> where K: Borrow<Q> + Ord, Q: Ord;
        fn std_retain<F>(&mut self, argument1: F) where K: Ord, F: FnMut(&K, &mut V) -> bool;
        fn std_append(&mut self, argument1: &mut Self) where K: Ord, A: Clone;
        fn std_range<T: ?Sized, R>(&self, argument1: R) -> Range<'_, K, V> where T: Ord, K: Borrow<T> + Ord, R: RangeBounds<T>;
        fn std_range_mut<T: ?Sized, R>(&mut self, argument1: R) -> RangeMut<'_, K, V> where T: Ord, K: Borrow<T> + Ord, R: RangeBounds<T>;
        fn std_entry(&mut self, argument1: K) -> Entry<'_, K, V, A> where K: Ord;
        fn std_split_off<Q: ?Sized + Ord>(&mut self, argument1: &Q) -> Self where K: Borrow<Q> + Ord, A: Clone;
        fn std_extract_if<F, R>(&mut self, argument1: R, argument2: F) -> ExtractIf<'_, K, V, R, F, A> where K: Ord, R: RangeBounds<K>, F: FnMut(&K, &mut V) -> bool;
        fn std_into_keys(self) -> IntoKeys<K, V, A>;
        fn std_into_values(self) -> IntoValues<K, V, A>;
    }
    impl<K, V, A: Allocator + Clone> Methods17<K, V, A> for BTreeMap<K, V, A> {
        fn std_clear(&mut self) { <BTreeMap<K, V, A>>::clear(self) }
        fn std_get<Q: ?Sized>(&self, argument1: &Q) -> Option<&V> where K: Borrow<Q> + Ord, Q: Ord { <BTreeMap<K, V, A>>::get::<Q>(self, argument1) }
        fn std_get_key_value<Q: ?Sized>(&self, argument1: &Q) -> Option<(&K, &V)> where K: Borrow<Q> + Ord, Q: Ord { <BTreeMap<K, V, A>>::get_key_value::<Q>(self, argument1) }
        fn std_first_key_value(&self) -> Option<(&K, &V)> where K: Ord { <BTreeMap<K, V, A>>::first_key_value(self) }
        fn std_first_entry(&mut self) -> Option<OccupiedEntry<'_, K, V, A>> where K: Ord { <BTreeMap<K, V, A>>::first_entry(self) }
        fn std_pop_first(&mut self) -> Option<(K, V)> where K: Ord { <BTreeMap<K, V, A>>::pop_first(self) }
        fn std_last_key_value(&self) -> Option<(&K, &V)> where K: Ord { <BTreeMap<K, V, A>>::last_key_value(self) }
        fn std_last_entry(&mut self) -> Option<OccupiedEntry<'_, K, V, A>> where K: Ord { <BTreeMap<K, V, A>>::last_entry(self) }
        fn std_pop_last(&mut self) -> Option<(K, V)> where K: Ord { <BTreeMap<K, V, A>>::pop_last(self) }
        fn std_contains_key<Q: ?Sized>(&self, argument1: &Q) -> bool where K: Borrow<Q> + Ord, Q: Ord { <BTreeMap<K, V, A>>::contains_key::<Q>(self, argument1) }
        fn std_get_mut<Q: ?Sized>(&mut self, argument1: &Q) -> Option<&mut V> where K: Borrow<Q> + Ord, Q: Ord { <BTreeMap<K, V, A>>::get_mut::<Q>(self, argument1) }
        fn std_insert(&mut self, argument1: K, argument2: V) -> Option<V> where K: Ord { <BTreeMap<K, V, A>>::insert(self, argument1, argument2) }
        fn std_remove<Q: ?Sized>(&mut self, argument1: &Q) -> Option<V> where K: Borrow<Q> + Ord, Q: Ord { <BTreeMap<K, V, A>>::remove::<Q>(self, argument1) }
        fn std_remove_entry<Q: ?Sized>(&mut self, argument1: &Q) -> Option<(K, V)> where K: Borrow<Q> + Ord, Q: Ord { <BTreeMap<K, V, A>>::remove_entry::<Q>(self, argument1) }
        fn std_retain<F>(&mut self, argument1: F) where K: Ord, F: FnMut(&K, &mut V) -> bool { <BTreeMap<K, V, A>>::retain::<F>(self, argument1) }
        fn std_append(&mut self, argument1: &mut Self) where K: Ord, A: Clone { <BTreeMap<K, V, A>>::append(self, argument1) }
        fn std_range<T: ?Sized, R>(&self, argument1: R) -> Range<'_, K, V> where T: Ord, K: Borrow<T> + Ord, R: RangeBounds<T> { <BTreeMap<K, V, A>>::range::<T, R>(self, argument1) }
        fn std_range_mut<T: ?Sized, R>(&mut self, argument1: R) -> RangeMut<'_, K, V> where T: Ord, K: Borrow<T> + Ord, R: RangeBounds<T> { <BTreeMap<K, V, A>>::range_mut::<T, R>(self, argument1) }
        fn std_entry(&mut self, argument1: K) -> Entry<'_, K, V, A> where K: Ord { <BTreeMap<K, V, A>>::entry(self, argument1) }
        fn std_split_off<Q: ?Sized + Ord>(&mut self, argument1: &Q) -> Self where K: Borrow<Q> + Ord, A: Clone { <BTreeMap<K, V, A>>::split_off::<Q>(self, argument1) }
        fn std_extract_if<F, R>(&mut self, argument1: R, argument2: F) -> ExtractIf<'_, K, V, R, F, A> where K: Ord, R: RangeBounds<K>, F: FnMut(&K, &mut V) -> bool { <BTreeMap<K, V, A>>::extract_if::<F, R>(self, argument1, argument2) }
        fn std_into_keys(self) -> IntoKeys<K, V, A> { <BTreeMap<K, V, A>>::into_keys(self) }
        fn std_into_values(self) -> IntoValues<K, V, A> { <BTreeMap<K, V, A>>::into_values(self) }
    }

    fn needs18<'a, K, V, A: Allocator + Clone>(_: PhantomData<(&'a BTreeMap<K, V, A>,)>) where &'a BTreeMap<K, V, A>: IntoIterator<Item = (&'a K, &'a V), IntoIter = Iter<'a, K, V>> {}
    fn has18<'a, K, V, A: Allocator + Clone>(subject: PhantomData<(&'a BTreeMap<K, V, A>,)>) {
        needs18::<K, V, A>(subject);
    }

    fn needs19<'a, K: 'a, V: 'a>(_: PhantomData<(Iter<'a, K, V>,)>) where Iter<'a, K, V>: Iterator<Item = (&'a K, &'a V)> {}
    fn has19<'a, K: 'a, V: 'a>(subject: PhantomData<(Iter<'a, K, V>,)>) {
        needs19::<K, V>(subject);
    }

    fn needs20<'e0, K, V>(_: PhantomData<(Iter<'e0, K, V>,)>) where Iter<'e0, K, V>: FusedIterator {}
    fn has20<'e0, K, V>(subject: PhantomData<(Iter<'e0, K, V>,)>) {
        needs20::<K, V>(subject);
    }

    fn needs21<'a, K: 'a, V: 'a>(_: PhantomData<(Iter<'a, K, V>,)>) where Iter<'a, K, V>: DoubleEndedIterator {}
    fn has21<'a, K: 'a, V: 'a>(subject: PhantomData<(Iter<'a, K, V>,)>) {
        needs21::<K, V>(subject);
    }

    fn needs22<'e0, K, V>(_: PhantomData<(Iter<'e0, K, V>,)>) where Iter<'e0, K, V>: ExactSizeIterator {}
    fn has22<'e0, K, V>(subject: PhantomData<(Iter<'e0, K, V>,)>) {
        needs22::<K, V>(subject);
    }

    fn needs23<'e0, K, V>(_: PhantomData<(Iter<'e0, K, V>,)>) where Iter<'e0, K, V>: Clone {}
    fn has23<'e0, K, V>(subject: PhantomData<(Iter<'e0, K, V>,)>) {
        needs23::<K, V>(subject);
    }

    fn needs24<'a, K, V, A: Allocator + Clone>(_: PhantomData<(&'a mut BTreeMap<K, V, A>,)>) where &'a mut BTreeMap<K, V, A>: IntoIterator<Item = (&'a K, &'a mut V), IntoIter = IterMut<'a, K, V>> {}
    fn has24<'a, K, V, A: Allocator + Clone>(subject: PhantomData<(&'a mut BTreeMap<K, V, A>,)>) {
        needs24::<K, V, A>(subject);
    }

    fn needs25<'a, K, V>(_: PhantomData<(IterMut<'a, K, V>,)>) where IterMut<'a, K, V>: Iterator<Item = (&'a K, &'a mut V)> {}
    fn has25<'a, K, V>(subject: PhantomData<(IterMut<'a, K, V>,)>) {
        needs25::<K, V>(subject);
    }

    fn needs26<'a, K, V>(_: PhantomData<(IterMut<'a, K, V>,)>) where IterMut<'a, K, V>: DoubleEndedIterator {}
    fn has26<'a, K, V>(subject: PhantomData<(IterMut<'a, K, V>,)>) {
        needs26::<K, V>(subject);
    }

    fn needs27<'e0, K, V>(_: PhantomData<(IterMut<'e0, K, V>,)>) where IterMut<'e0, K, V>: ExactSizeIterator {}
    fn has27<'e0, K, V>(subject: PhantomData<(IterMut<'e0, K, V>,)>) {
        needs27::<K, V>(subject);
    }

    fn needs28<'e0, K, V>(_: PhantomData<(IterMut<'e0, K, V>,)>) where IterMut<'e0, K, V>: FusedIterator {}
    fn has28<'e0, K, V>(subject: PhantomData<(IterMut<'e0, K, V>,)>) {
        needs28::<K, V>(subject);
    }

    fn needs29<K, V, A: Allocator + Clone>(_: PhantomData<(BTreeMap<K, V, A>,)>) where BTreeMap<K, V, A>: IntoIterator<Item = (K, V), IntoIter = IntoIter<K, V, A>> {}
    fn has29<K, V, A: Allocator + Clone>(subject: PhantomData<(BTreeMap<K, V, A>,)>) {
        needs29::<K, V, A>(subject);
    }

    fn needs30<K, V, A: Allocator + Clone>(_: PhantomData<(IntoIter<K, V, A>,)>) where IntoIter<K, V, A>: Iterator<Item = (K, V)> {}
    fn has30<K, V, A: Allocator + Clone>(subject: PhantomData<(IntoIter<K, V, A>,)>) {
        needs30::<K, V, A>(subject);
    }

    fn needs31<K, V, A: Allocator + Clone>(_: PhantomData<(IntoIter<K, V, A>,)>) where IntoIter<K, V, A>: DoubleEndedIterator {}
    fn has31<K, V, A: Allocator + Clone>(subject: PhantomData<(IntoIter<K, V, A>,)>) {
        needs31::<K, V, A>(subject);
    }

    fn needs32<K, V, A: Allocator + Clone>(_: PhantomData<(IntoIter<K, V, A>,)>) where IntoIter<K, V, A>: ExactSizeIterator {}
    fn has32<K, V, A: Allocator + Clone>(subject: PhantomData<(IntoIter<K, V, A>,)>) {
        needs32::<K, V, A>(subject);
    }

    fn needs33<K, V, A: Allocator + Clone>(_: PhantomData<(IntoIter<K, V, A>,)>) where IntoIter<K, V, A>: FusedIterator {}
    fn has33<K, V, A: Allocator + Clone>(subject: PhantomData<(IntoIter<K, V, A>,)>) {
        needs33::<K, V, A>(subject);
    }

    fn needs34<'a, K, V>(_: PhantomData<(Keys<'a, K, V>,)>) where Keys<'a, K, V>: Iterator<Item = &'a K> {}
    fn has34<'a, K, V>(subject: PhantomData<(Keys<'a, K, V>,)>) {
        needs34::<K, V>(subject);
    }

    fn needs35<'a, K, V>(_: PhantomData<(Keys<'a, K, V>,)>) where Keys<'a, K, V>: DoubleEndedIterator {}
    fn has35<'a, K, V>(subject: PhantomData<(Keys<'a, K, V>,)>) {
        needs35::<K, V>(subject);
    }

    fn needs36<'e0, K, V>(_: PhantomData<(Keys<'e0, K, V>,)>) where Keys<'e0, K, V>: ExactSizeIterator {}
    fn has36<'e0, K, V>(subject: PhantomData<(Keys<'e0, K, V>,)>) {
        needs36::<K, V>(subject);
    }

    fn needs37<'e0, K, V>(_: PhantomData<(Keys<'e0, K, V>,)>) where Keys<'e0, K, V>: FusedIterator {}
    fn has37<'e0, K, V>(subject: PhantomData<(Keys<'e0, K, V>,)>) {
        needs37::<K, V>(subject);
    }

    fn needs38<'e0, K, V>(_: PhantomData<(Keys<'e0, K, V>,)>) where Keys<'e0, K, V>: Clone {}
    fn has38<'e0, K, V>(subject: PhantomData<(Keys<'e0, K, V>,)>) {
        needs38::<K, V>(subject);
    }

    fn needs39<'e0, K, V>(_: PhantomData<(Keys<'e0, K, V>,)>) where Keys<'e0, K, V>: Default {}
    fn has39<'e0, K, V>(subject: PhantomData<(Keys<'e0, K, V>,)>) {
        needs39::<K, V>(subject);
    }

    fn needs40<'a, K, V>(_: PhantomData<(Values<'a, K, V>,)>) where Values<'a, K, V>: Iterator<Item = &'a V> {}
    fn has40<'a, K, V>(subject: PhantomData<(Values<'a, K, V>,)>) {
        needs40::<K, V>(subject);
    }

    fn needs41<'a, K, V>(_: PhantomData<(Values<'a, K, V>,)>) where Values<'a, K, V>: DoubleEndedIterator {}
    fn has41<'a, K, V>(subject: PhantomData<(Values<'a, K, V>,)>) {
        needs41::<K, V>(subject);
    }

    fn needs42<'e0, K, V>(_: PhantomData<(Values<'e0, K, V>,)>) where Values<'e0, K, V>: ExactSizeIterator {}
    fn has42<'e0, K, V>(subject: PhantomData<(Values<'e0, K, V>,)>) {
        needs42::<K, V>(subject);
    }

    fn needs43<'e0, K, V>(_: PhantomData<(Values<'e0, K, V>,)>) where Values<'e0, K, V>: FusedIterator {}
    fn has43<'e0, K, V>(subject: PhantomData<(Values<'e0, K, V>,)>) {
        needs43::<K, V>(subject);
    }

    fn needs44<'e0, K, V>(_: PhantomData<(Values<'e0, K, V>,)>) where Values<'e0, K, V>: Clone {}
    fn has44<'e0, K, V>(subject: PhantomData<(Values<'e0, K, V>,)>) {
        needs44::<K, V>(subject);
    }

    fn needs45<'e0, K, V>(_: PhantomData<(Values<'e0, K, V>,)>) where Values<'e0, K, V>: Default {}
    fn has45<'e0, K, V>(subject: PhantomData<(Values<'e0, K, V>,)>) {
        needs45::<K, V>(subject);
    }

    fn needs46<'e0, K, V, R, F, A>(_: PhantomData<(ExtractIf<'e0, K, V, R, F, A>,)>) where K: fmt::Debug, V: fmt::Debug, A: Allocator + Clone, ExtractIf<'e0, K, V, R, F, A>: fmt::Debug {}
    fn has46<'e0, K, V, R, F, A>(subject: PhantomData<(ExtractIf<'e0, K, V, R, F, A>,)>) where K: fmt::Debug, V: fmt::Debug, A: Allocator + Clone {
        needs46::<K, V, R, F, A>(subject);
    }

    fn needs47<'e0, K, V, R, F, A: Allocator + Clone>(_: PhantomData<(ExtractIf<'e0, K, V, R, F, A>,)>) where K: PartialOrd, R: RangeBounds<K>, F: FnMut(&K, &mut V) -> bool, ExtractIf<'e0, K, V, R, F, A>: Iterator<Item = (K, V)> {}
    fn has47<'e0, K, V, R, F, A: Allocator + Clone>(subject: PhantomData<(ExtractIf<'e0, K, V, R, F, A>,)>) where K: PartialOrd, R: RangeBounds<K>, F: FnMut(&K, &mut V) -> bool {
        needs47::<K, V, R, F, A>(subject);
    }

    fn needs48<'e0, K, V, R, F>(_: PhantomData<(ExtractIf<'e0, K, V, R, F>,)>) where K: PartialOrd, R: RangeBounds<K>, F: FnMut(&K, &mut V) -> bool, ExtractIf<'e0, K, V, R, F>: FusedIterator {}
    fn has48<'e0, K, V, R, F>(subject: PhantomData<(ExtractIf<'e0, K, V, R, F>,)>) where K: PartialOrd, R: RangeBounds<K>, F: FnMut(&K, &mut V) -> bool {
        needs48::<K, V, R, F>(subject);
    }

    fn needs49<'a, K, V>(_: PhantomData<(Range<'a, K, V>,)>) where Range<'a, K, V>: Iterator<Item = (&'a K, &'a V)> {}
    fn has49<'a, K, V>(subject: PhantomData<(Range<'a, K, V>,)>) {
        needs49::<K, V>(subject);
    }

    fn needs50<'e0, K, V>(_: PhantomData<(Range<'e0, K, V>,)>) where Range<'e0, K, V>: Default {}
    fn has50<'e0, K, V>(subject: PhantomData<(Range<'e0, K, V>,)>) {
        needs50::<K, V>(subject);
    }

    fn needs51<'e0, K, V>(_: PhantomData<(RangeMut<'e0, K, V>,)>) where RangeMut<'e0, K, V>: Default {}
    fn has51<'e0, K, V>(subject: PhantomData<(RangeMut<'e0, K, V>,)>) {
        needs51::<K, V>(subject);
    }

    fn needs52<'a, K, V>(_: PhantomData<(ValuesMut<'a, K, V>,)>) where ValuesMut<'a, K, V>: Iterator<Item = &'a mut V> {}
    fn has52<'a, K, V>(subject: PhantomData<(ValuesMut<'a, K, V>,)>) {
        needs52::<K, V>(subject);
    }

    fn needs53<'a, K, V>(_: PhantomData<(ValuesMut<'a, K, V>,)>) where ValuesMut<'a, K, V>: DoubleEndedIterator {}
    fn has53<'a, K, V>(subject: PhantomData<(ValuesMut<'a, K, V>,)>) {
        needs53::<K, V>(subject);
    }

    fn needs54<'e0, K, V>(_: PhantomData<(ValuesMut<'e0, K, V>,)>) where ValuesMut<'e0, K, V>: ExactSizeIterator {}
    fn has54<'e0, K, V>(subject: PhantomData<(ValuesMut<'e0, K, V>,)>) {
        needs54::<K, V>(subject);
    }

    fn needs55<'e0, K, V>(_: PhantomData<(ValuesMut<'e0, K, V>,)>) where ValuesMut<'e0, K, V>: FusedIterator {}
    fn has55<'e0, K, V>(subject: PhantomData<(ValuesMut<'e0, K, V>,)>) {
        needs55::<K, V>(subject);
    }

    fn needs56<'e0, K, V>(_: PhantomData<(ValuesMut<'e0, K, V>,)>) where ValuesMut<'e0, K, V>: Default {}
    fn has56<'e0, K, V>(subject: PhantomData<(ValuesMut<'e0, K, V>,)>) {
        needs56::<K, V>(subject);
    }

    fn needs57<K, V, A: Allocator + Clone>(_: PhantomData<(IntoKeys<K, V, A>,)>) where IntoKeys<K, V, A>: Iterator<Item = K> {}
    fn has57<K, V, A: Allocator + Clone>(subject: PhantomData<(IntoKeys<K, V, A>,)>) {
        needs57::<K, V, A>(subject);
    }

    fn needs58<K, V, A: Allocator + Clone>(_: PhantomData<(IntoKeys<K, V, A>,)>) where IntoKeys<K, V, A>: DoubleEndedIterator {}
    fn has58<K, V, A: Allocator + Clone>(subject: PhantomData<(IntoKeys<K, V, A>,)>) {
        needs58::<K, V, A>(subject);
    }

    fn needs59<K, V, A: Allocator + Clone>(_: PhantomData<(IntoKeys<K, V, A>,)>) where IntoKeys<K, V, A>: ExactSizeIterator {}
    fn has59<K, V, A: Allocator + Clone>(subject: PhantomData<(IntoKeys<K, V, A>,)>) {
        needs59::<K, V, A>(subject);
    }

    fn needs60<K, V, A: Allocator + Clone>(_: PhantomData<(IntoKeys<K, V, A>,)>) where IntoKeys<K, V, A>: FusedIterator {}
    fn has60<K, V, A: Allocator + Clone>(subject: PhantomData<(IntoKeys<K, V, A>,)>) {
        needs60::<K, V, A>(subject);
    }

    fn needs61<K, V, A>(_: PhantomData<(IntoKeys<K, V, A>,)>) where A: Allocator + Default + Clone, IntoKeys<K, V, A>: Default {}
    fn has61<K, V, A>(subject: PhantomData<(IntoKeys<K, V, A>,)>) where A: Allocator + Default + Clone {
        needs61::<K, V, A>(subject);
    }

    fn needs62<K, V, A: Allocator + Clone>(_: PhantomData<(IntoValues<K, V, A>,)>) where IntoValues<K, V, A>: Iterator<Item = V> {}
    fn has62<K, V, A: Allocator + Clone>(subject: PhantomData<(IntoValues<K, V, A>,)>) {
        needs62::<K, V, A>(subject);
    }

    fn needs63<K, V, A: Allocator + Clone>(_: PhantomData<(IntoValues<K, V, A>,)>) where IntoValues<K, V, A>: DoubleEndedIterator {}
    fn has63<K, V, A: Allocator + Clone>(subject: PhantomData<(IntoValues<K, V, A>,)>) {
        needs63::<K, V, A>(subject);
    }

    fn needs64<K, V, A: Allocator + Clone>(_: PhantomData<(IntoValues<K, V, A>,)>) where IntoValues<K, V, A>: ExactSizeIterator {}
    fn has64<K, V, A: Allocator + Clone>(subject: PhantomData<(IntoValues<K, V, A>,)>) {
        needs64::<K, V, A>(subject);
    }

    fn needs65<K, V, A: Allocator + Clone>(_: PhantomData<(IntoValues<K, V, A>,)>) where IntoValues<K, V, A>: FusedIterator {}
    fn has65<K, V, A: Allocator + Clone>(subject: PhantomData<(IntoValues<K, V, A>,)>) {
        needs65::<K, V, A>(subject);
    }

    fn needs66<K, V, A>(_: PhantomData<(IntoValues<K, V, A>,)>) where A: Allocator + Default + Clone, IntoValues<K, V, A>: Default {}
    fn has66<K, V, A>(subject: PhantomData<(IntoValues<K, V, A>,)>) where A: Allocator + Default + Clone {
        needs66::<K, V, A>(subject);
    }

    fn needs67<'a, K, V>(_: PhantomData<(Range<'a, K, V>,)>) where Range<'a, K, V>: DoubleEndedIterator {}
    fn has67<'a, K, V>(subject: PhantomData<(Range<'a, K, V>,)>) {
        needs67::<K, V>(subject);
    }

    fn needs68<'e0, K, V>(_: PhantomData<(Range<'e0, K, V>,)>) where Range<'e0, K, V>: FusedIterator {}
    fn has68<'e0, K, V>(subject: PhantomData<(Range<'e0, K, V>,)>) {
        needs68::<K, V>(subject);
    }

    fn needs69<'e0, K, V>(_: PhantomData<(Range<'e0, K, V>,)>) where Range<'e0, K, V>: Clone {}
    fn has69<'e0, K, V>(subject: PhantomData<(Range<'e0, K, V>,)>) {
        needs69::<K, V>(subject);
    }

    fn needs70<'a, K, V>(_: PhantomData<(RangeMut<'a, K, V>,)>) where RangeMut<'a, K, V>: Iterator<Item = (&'a K, &'a mut V)> {}
    fn has70<'a, K, V>(subject: PhantomData<(RangeMut<'a, K, V>,)>) {
        needs70::<K, V>(subject);
    }

    fn needs71<'a, K, V>(_: PhantomData<(RangeMut<'a, K, V>,)>) where RangeMut<'a, K, V>: DoubleEndedIterator {}
    fn has71<'a, K, V>(subject: PhantomData<(RangeMut<'a, K, V>,)>) {
        needs71::<K, V>(subject);
    }

    fn needs72<'e0, K, V>(_: PhantomData<(RangeMut<'e0, K, V>,)>) where RangeMut<'e0, K, V>: FusedIterator {}
    fn has72<'e0, K, V>(subject: PhantomData<(RangeMut<'e0, K, V>,)>) {
        needs72::<K, V>(subject);
    }

    fn needs73<K: Ord, V>(_: PhantomData<(BTreeMap<K, V>, (K, V),)>) where BTreeMap<K, V>: FromIterator<(K, V)> {}
    fn has73<K: Ord, V>(subject: PhantomData<(BTreeMap<K, V>, (K, V),)>) {
        needs73::<K, V>(subject);
    }

    fn needs74<K: Ord, V, A: Allocator + Clone>(_: PhantomData<(BTreeMap<K, V, A>, (K, V),)>) where BTreeMap<K, V, A>: Extend<(K, V)> {}
    fn has74<K: Ord, V, A: Allocator + Clone>(subject: PhantomData<(BTreeMap<K, V, A>, (K, V),)>) {
        needs74::<K, V, A>(subject);
    }

    fn needs75<'a, K: Ord + Copy, V: Copy, A: Allocator + Clone>(_: PhantomData<(BTreeMap<K, V, A>, (&'a K, &'a V),)>) where BTreeMap<K, V, A>: Extend<(&'a K, &'a V)> {}
    fn has75<'a, K: Ord + Copy, V: Copy, A: Allocator + Clone>(subject: PhantomData<(BTreeMap<K, V, A>, (&'a K, &'a V),)>) {
        needs75::<K, V, A>(subject);
    }

    fn needs76<K: Hash, V: Hash, A: Allocator + Clone>(_: PhantomData<(BTreeMap<K, V, A>,)>) where BTreeMap<K, V, A>: Hash {}
    fn has76<K: Hash, V: Hash, A: Allocator + Clone>(subject: PhantomData<(BTreeMap<K, V, A>,)>) {
        needs76::<K, V, A>(subject);
    }

    fn needs77<K, V>(_: PhantomData<(BTreeMap<K, V>,)>) where BTreeMap<K, V>: Default {}
    fn has77<K, V>(subject: PhantomData<(BTreeMap<K, V>,)>) {
        needs77::<K, V>(subject);
    }

    fn needs78<K: PartialEq, V: PartialEq, A: Allocator + Clone>(_: PhantomData<(BTreeMap<K, V, A>,)>) where BTreeMap<K, V, A>: PartialEq {}
    fn has78<K: PartialEq, V: PartialEq, A: Allocator + Clone>(subject: PhantomData<(BTreeMap<K, V, A>,)>) {
        needs78::<K, V, A>(subject);
    }

    fn needs79<K: Eq, V: Eq, A: Allocator + Clone>(_: PhantomData<(BTreeMap<K, V, A>,)>) where BTreeMap<K, V, A>: Eq {}
    fn has79<K: Eq, V: Eq, A: Allocator + Clone>(subject: PhantomData<(BTreeMap<K, V, A>,)>) {
        needs79::<K, V, A>(subject);
    }

    fn needs80<K: PartialOrd, V: PartialOrd, A: Allocator + Clone>(_: PhantomData<(BTreeMap<K, V, A>,)>) where BTreeMap<K, V, A>: PartialOrd {}
    fn has80<K: PartialOrd, V: PartialOrd, A: Allocator + Clone>(subject: PhantomData<(BTreeMap<K, V, A>,)>) {
        needs80::<K, V, A>(subject);
    }

    fn needs81<K: Ord, V: Ord, A: Allocator + Clone>(_: PhantomData<(BTreeMap<K, V, A>,)>) where BTreeMap<K, V, A>: Ord {}
    fn has81<K: Ord, V: Ord, A: Allocator + Clone>(subject: PhantomData<(BTreeMap<K, V, A>,)>) {
        needs81::<K, V, A>(subject);
    }

    fn needs82<K: Debug, V: Debug, A: Allocator + Clone>(_: PhantomData<(BTreeMap<K, V, A>,)>) where BTreeMap<K, V, A>: Debug {}
    fn has82<K: Debug, V: Debug, A: Allocator + Clone>(subject: PhantomData<(BTreeMap<K, V, A>,)>) {
        needs82::<K, V, A>(subject);
    }

    fn needs83<'e0, K, Q: ?Sized, V, A: Allocator + Clone>(_: PhantomData<(BTreeMap<K, V, A>, &'e0 Q,)>) where K: Borrow<Q> + Ord, Q: Ord, BTreeMap<K, V, A>: Index<&'e0 Q, Output = V> {}
    fn has83<'e0, K, Q: ?Sized, V, A: Allocator + Clone>(subject: PhantomData<(BTreeMap<K, V, A>, &'e0 Q,)>) where K: Borrow<Q> + Ord, Q: Ord {
        needs83::<K, Q, V, A>(subject);
    }

    fn needs84<K: Ord, V, const N: usize>(_: PhantomData<(BTreeMap<K, V>, [(K, V); N],)>) where BTreeMap<K, V>: From<[(K, V); N]> {}
    fn has84<K: Ord, V, const N: usize>(subject: PhantomData<(BTreeMap<K, V>, [(K, V); N],)>) {
        needs84::<K, V, N>(subject);
    }

    trait Methods85<K, V, A: Allocator + Clone>: Sized {
        fn std_iter(&self) -> Iter<'_, K, V>;
        fn std_iter_mut(&mut self) -> IterMut<'_, K, V>;
        fn std_keys(&self) -> Keys<'_, K, V>;
        fn std_values(&self) -> Values<'_, K, V>;
        fn std_values_mut(&mut self) -> ValuesMut<'_, K, V>;
        fn std_len(&self) -> usize;
        fn std_is_empty(&self) -> bool;
    }
    impl<K, V, A: Allocator + Clone> Methods85<K, V, A> for BTreeMap<K, V, A> {
        fn std_iter(&self) -> Iter<'_, K, V> { <BTreeMap<K, V, A>>::iter(self) }
        fn std_iter_mut(&mut self) -> IterMut<'_, K, V> { <BTreeMap<K, V, A>>::iter_mut(self) }
        fn std_keys(&self) -> Keys<'_, K, V> { <BTreeMap<K, V, A>>::keys(self) }
        fn std_values(&self) -> Values<'_, K, V> { <BTreeMap<K, V, A>>::values(self) }
        fn std_values_mut(&mut self) -> ValuesMut<'_, K, V> { <BTreeMap<K, V, A>>::values_mut(self) }
        fn std_len(&self) -> usize { <BTreeMap<K, V, A>>::len(self) }
        fn std_is_empty(&self) -> bool { <BTreeMap<K, V, A>>::is_empty(self) }
    }

    fn needs86<'e0, K: Debug + Ord, V: Debug, A: Allocator + Clone>(_: PhantomData<(Entry<'e0, K, V, A>,)>) where Entry<'e0, K, V, A>: Debug {}
    fn has86<'e0, K: Debug + Ord, V: Debug, A: Allocator + Clone>(subject: PhantomData<(Entry<'e0, K, V, A>,)>) {
        needs86::<K, V, A>(subject);
    }

    fn needs87<'e0, K: Debug + Ord, V, A: Allocator + Clone>(_: PhantomData<(VacantEntry<'e0, K, V, A>,)>) where VacantEntry<'e0, K, V, A>: Debug {}
    fn has87<'e0, K: Debug + Ord, V, A: Allocator + Clone>(subject: PhantomData<(VacantEntry<'e0, K, V, A>,)>) {
        needs87::<K, V, A>(subject);
    }

    fn needs88<'e0, K: Debug + Ord, V: Debug, A: Allocator + Clone>(_: PhantomData<(OccupiedEntry<'e0, K, V, A>,)>) where OccupiedEntry<'e0, K, V, A>: Debug {}
    fn has88<'e0, K: Debug + Ord, V: Debug, A: Allocator + Clone>(subject: PhantomData<(OccupiedEntry<'e0, K, V, A>,)>) {
        needs88::<K, V, A>(subject);
    }

    trait Methods89<'a, K: Ord, V, A: Allocator + Clone>: Sized {
        fn std_or_insert(self, argument1: V) -> &'a mut V;
        fn std_or_insert_with<F: FnOnce() -> V>(self, argument1: F) -> &'a mut V;
        fn std_or_insert_with_key<F: FnOnce(&K) -> V>(self, argument1: F) -> &'a mut V;
        fn std_key(&self) -> &K;
        fn std_and_modify<F>(self, argument1: F) -> Self where F: FnOnce(&mut V);
        fn std_insert_entry(self, argument1: V) -> OccupiedEntry<'a, K, V, A>;
    }
    impl<'a, K: Ord, V, A: Allocator + Clone> Methods89<'a, K, V, A> for Entry<'a, K, V, A> {
        fn std_or_insert(self, argument1: V) -> &'a mut V { <Entry<'a, K, V, A>>::or_insert(self, argument1) }
        fn std_or_insert_with<F: FnOnce() -> V>(self, argument1: F) -> &'a mut V { <Entry<'a, K, V, A>>::or_insert_with::<F>(self, argument1) }
        fn std_or_insert_with_key<F: FnOnce(&K) -> V>(self, argument1: F) -> &'a mut V { <Entry<'a, K, V, A>>::or_insert_with_key::<F>(self, argument1) }
        fn std_key(&self) -> &K { <Entry<'a, K, V, A>>::key(self) }
        fn std_and_modify<F>(self, argument1: F) -> Self where F: FnOnce(&mut V) { <Entry<'a, K, V, A>>::and_modify::<F>(self, argument1) }
        fn std_insert_entry(self, argument1: V) -> OccupiedEntry<'a, K, V, A> { <Entry<'a, K, V, A>>::insert_entry(self, argument1) }
    }

    trait Methods90<'a, K: Ord, V: Default, A: Allocator + Clone>: Sized {
        fn std_or_default(self) -> &'a mut V;
    }
    impl<'a, K: Ord, V: Default, A: Allocator + Clone> Methods90<'a, K, V, A> for Entry<'a, K, V, A> {
        fn std_or_default(self) -> &'a mut V { <Entry<'a, K, V, A>>::or_default(self) }
    }

    trait Methods91<'a, K: Ord, V, A: Allocator + Clone>: Sized {
        fn std_key(&self) -> &K;
        fn std_into_key(self) -> K;
        fn std_insert(self, argument1: V) -> &'a mut V;
        fn std_insert_entry(self, argument1: V) -> OccupiedEntry<'a, K, V, A>;
    }
    impl<'a, K: Ord, V, A: Allocator + Clone> Methods91<'a, K, V, A> for VacantEntry<'a, K, V, A> {
        fn std_key(&self) -> &K { <VacantEntry<'a, K, V, A>>::key(self) }
        fn std_into_key(self) -> K { <VacantEntry<'a, K, V, A>>::into_key(self) }
        fn std_insert(self, argument1: V) -> &'a mut V { <VacantEntry<'a, K, V, A>>::insert(self, argument1) }
        fn std_insert_entry(self, argument1: V) -> OccupiedEntry<'a, K, V, A> { <VacantEntry<'a, K, V, A>>::insert_entry(self, argument1) }
    }

    trait Methods92<'a, K: Ord, V, A: Allocator + Clone>: Sized {
        fn std_key(&self) -> &K;
        fn std_remove_entry(self) -> (K, V);
        fn std_get(&self) -> &V;
        fn std_get_mut(&mut self) -> &mut V;
        fn std_into_mut(self) -> &'a mut V;
        fn std_insert(&mut self, argument1: V) -> V;
        fn std_remove(self) -> V;
    }
    impl<'a, K: Ord, V, A: Allocator + Clone> Methods92<'a, K, V, A> for OccupiedEntry<'a, K, V, A> {
        fn std_key(&self) -> &K { <OccupiedEntry<'a, K, V, A>>::key(self) }
        fn std_remove_entry(self) -> (K, V) { <OccupiedEntry<'a, K, V, A>>::remove_entry(self) }
        fn std_get(&self) -> &V { <OccupiedEntry<'a, K, V, A>>::get(self) }
        fn std_get_mut(&mut self) -> &mut V { <OccupiedEntry<'a, K, V, A>>::get_mut(self) }
        fn std_into_mut(self) -> &'a mut V { <OccupiedEntry<'a, K, V, A>>::into_mut(self) }
        fn std_insert(&mut self, argument1: V) -> V { <OccupiedEntry<'a, K, V, A>>::insert(self, argument1) }
        fn std_remove(self) -> V { <OccupiedEntry<'a, K, V, A>>::remove(self) }
    }
}

mod set {
    use std::borrow::Borrow;
    use std::fmt::{self, Debug};
    use std::hash::Hash;
    use std::iter::FusedIterator;
    use std::marker::PhantomData;
    use std::ops::{BitAnd, BitOr, BitXor, Index, RangeBounds, Sub};

    use allocator_api2::alloc::Allocator;
    use ctree::set::{Difference, ExtractIf, Intersection, IntoIter, Iter, Range, SymmetricDifference, Union};
    use ctree::CTreeSet as BTreeSet;

    fn needs1<T: Hash, A: Allocator + Clone>(_: PhantomData<(BTreeSet<T, A>,)>) where BTreeSet<T, A>: Hash {}
    fn has1<T: Hash, A: Allocator + Clone>(subject: PhantomData<(BTreeSet<T, A>,)>) {
        needs1::<T, A>(subject);
    }

    fn needs2<T: PartialEq, A: Allocator + Clone>(_: PhantomData<(BTreeSet<T, A>,)>) where BTreeSet<T, A>: PartialEq {}
    fn has2<T: PartialEq, A: Allocator + Clone>(subject: PhantomData<(BTreeSet<T, A>,)>) {
        needs2::<T, A>(subject);
    }

    fn needs3<T: Eq, A: Allocator + Clone>(_: PhantomData<(BTreeSet<T, A>,)>) where BTreeSet<T, A>: Eq {}
    fn has3<T: Eq, A: Allocator + Clone>(subject: PhantomData<(BTreeSet<T, A>,)>) {
        needs3::<T, A>(subject);
    }

    fn needs4<T: PartialOrd, A: Allocator + Clone>(_: PhantomData<(BTreeSet<T, A>,)>) where BTreeSet<T, A>: PartialOrd {}
    fn has4<T: PartialOrd, A: Allocator + Clone>(subject: PhantomData<(BTreeSet<T, A>,)>) {
        needs4::<T, A>(subject);
    }

    fn needs5<T: Ord, A: Allocator + Clone>(_: PhantomData<(BTreeSet<T, A>,)>) where BTreeSet<T, A>: Ord {}
    fn has5<T: Ord, A: Allocator + Clone>(subject: PhantomData<(BTreeSet<T, A>,)>) {
        needs5::<T, A>(subject);
    }

    fn needs6<T: Clone, A: Allocator + Clone>(_: PhantomData<(BTreeSet<T, A>,)>) where BTreeSet<T, A>: Clone {}
    fn has6<T: Clone, A: Allocator + Clone>(subject: PhantomData<(BTreeSet<T, A>,)>) {
        needs6::<T, A>(subject);
    }

    fn needs7<'e0, T: fmt::Debug>(_: PhantomData<(Iter<'e0, T>,)>) where Iter<'e0, T>: fmt::Debug {}
    fn has7<'e0, T: fmt::Debug>(subject: PhantomData<(Iter<'e0, T>,)>) {
        needs7::<T>(subject);
    }

    fn needs8<T: Debug, A: Allocator + Clone + Debug,>(_: PhantomData<(IntoIter<T, A>,)>) where IntoIter<T, A>: Debug {}
    fn has8<T: Debug, A: Allocator + Clone + Debug,>(subject: PhantomData<(IntoIter<T, A>,)>) {
        needs8::<T, A>(subject);
    }

    fn needs9<'a, T: 'a + Debug>(_: PhantomData<(Range<'a, T>,)>) where Range<'a, T>: Debug {}
    fn has9<'a, T: 'a + Debug>(subject: PhantomData<(Range<'a, T>,)>) {
        needs9::<T>(subject);
    }

    fn needs10<'e0, T: fmt::Debug, A: Allocator + Clone>(_: PhantomData<(Difference<'e0, T, A>,)>) where Difference<'e0, T, A>: fmt::Debug {}
    fn has10<'e0, T: fmt::Debug, A: Allocator + Clone>(subject: PhantomData<(Difference<'e0, T, A>,)>) {
        needs10::<T, A>(subject);
    }

    fn needs11<'e0, T: fmt::Debug>(_: PhantomData<(SymmetricDifference<'e0, T>,)>) where SymmetricDifference<'e0, T>: fmt::Debug {}
    fn has11<'e0, T: fmt::Debug>(subject: PhantomData<(SymmetricDifference<'e0, T>,)>) {
        needs11::<T>(subject);
    }

    fn needs12<'e0, T: Debug, A: Allocator + Clone>(_: PhantomData<(Intersection<'e0, T, A>,)>) where Intersection<'e0, T, A>: Debug {}
    fn has12<'e0, T: Debug, A: Allocator + Clone>(subject: PhantomData<(Intersection<'e0, T, A>,)>) {
        needs12::<T, A>(subject);
    }

    fn needs13<'e0, T: fmt::Debug>(_: PhantomData<(Union<'e0, T>,)>) where Union<'e0, T>: fmt::Debug {}
    fn has13<'e0, T: fmt::Debug>(subject: PhantomData<(Union<'e0, T>,)>) {
        needs13::<T>(subject);
    }

    trait Methods14<T>: Sized {
        fn std_new() -> BTreeSet<T>;
    }
    impl<T> Methods14<T> for BTreeSet<T> {
        fn std_new() -> BTreeSet<T> { <BTreeSet<T>>::new() }
    }
    const fn const14_new<T>() -> BTreeSet<T> { <BTreeSet<T>>::new() }

    trait Methods15<T, A: Allocator + Clone>: Sized {
        fn std_range<K: ?Sized, R>(&self, argument1: R) -> Range<'_, T> where K: Ord, T: Borrow<K> + Ord, R: RangeBounds<K>;
        fn std_difference<'a>(&'a self, argument1: &'a BTreeSet<T, A>) -> Difference<'a, T, A> where T: Ord;
        fn std_symmetric_difference<'a>(&'a self, argument1: &'a BTreeSet<T, A>) -> SymmetricDifference<'a, T> where T: Ord;
        fn std_intersection<'a>(&'a self, argument1: &'a BTreeSet<T, A>) -> Intersection<'a, T, A> where T: Ord;
        fn std_union<'a>(&'a self, argument1: &'a BTreeSet<T, A>) -> Union<'a, T> where T: Ord;
        fn std_clear(&mut self) where A: Clone;
        fn std_contains<Q: ?Sized>(&self, argument1: &Q) -> bool where T: Borrow<Q> + Ord, Q: Ord;
        fn std_get<Q: ?Sized>(&self, argument1: &Q) -> Option<&T> where T: Borrow<Q> + Ord, Q: Ord;
        fn std_is_disjoint(&self, argument1: &BTreeSet<T, A>) -> bool where T: Ord;
        fn std_is_subset(&self, argument1: &BTreeSet<T, A>) -> bool where T: Ord;
        fn std_is_superset(&self, argument1: &BTreeSet<T, A>) -> bool where T: Ord;
        fn std_first(&self) -> Option<&T> where T: Ord;
        fn std_last(&self) -> Option<&T> where T: Ord;
        fn std_pop_first(&mut self) -> Option<T> where T: Ord;
        fn std_pop_last(&mut self) -> Option<T> where T: Ord;
        fn std_insert(&mut self, argument1: T) -> bool where T: Ord;
        fn std_replace(&mut self, argument1: T) -> Option<T> where T: Ord;
        fn std_remove<Q: ?Sized>(&mut self, argument1: &Q) -> bool where T: Borrow<Q> + Ord, Q: Ord;
        fn std_take<Q: ?Sized>(&mut self, argument1: &Q) -> Option<T> where T: Borrow<Q> + Ord, Q: Ord;
        fn std_retain<F>(&mut self, argument1: F) where T: Ord, F: FnMut(&T) -> bool;
        fn std_append(&mut self, argument1: &mut Self) where T: Ord, A: Clone;
        fn std_split_off<Q: ?Sized + Ord>(&mut self, argument1: &Q) -> Self where T: Borrow<Q> + Ord, A: Clone;
        fn std_extract_if<F, R>(&mut self, argument1: R, argument2: F) -> ExtractIf<'_, T, R, F, A> where T: Ord, R: RangeBounds<T>, F: FnMut(&T) -> bool;
        fn std_iter(&self) -> Iter<'_, T>;
        fn std_len(&self) -> usize;
        fn std_is_empty(&self) -> bool;
    }
    impl<T, A: Allocator + Clone> Methods15<T, A> for BTreeSet<T, A> {
        fn std_range<K: ?Sized, R>(&self, argument1: R) -> Range<'_, T> where K: Ord, T: Borrow<K> + Ord, R: RangeBounds<K> { <BTreeSet<T, A>>::range::<K, R>(self, argument1) }
        fn std_difference<'a>(&'a self, argument1: &'a BTreeSet<T, A>) -> Difference<'a, T, A> where T: Ord { <BTreeSet<T, A>>::difference(self, argument1) }
        fn std_symmetric_difference<'a>(&'a self, argument1: &'a BTreeSet<T, A>) -> SymmetricDifference<'a, T> where T: Ord { <BTreeSet<T, A>>::symmetric_difference(self, argument1) }
        fn std_intersection<'a>(&'a self, argument1: &'a BTreeSet<T, A>) -> Intersection<'a, T, A> where T: Ord { <BTreeSet<T, A>>::intersection(self, argument1) }
        fn std_union<'a>(&'a self, argument1: &'a BTreeSet<T, A>) -> Union<'a, T> where T: Ord { <BTreeSet<T, A>>::union(self, argument1) }
        fn std_clear(&mut self) where A: Clone { <BTreeSet<T, A>>::clear(self) }
        fn std_contains<Q: ?Sized>(&self, argument1: &Q) -> bool where T: Borrow<Q> + Ord, Q: Ord { <BTreeSet<T, A>>::contains::<Q>(self, argument1) }
        fn std_get<Q: ?Sized>(&self, argument1: &Q) -> Option<&T> where T: Borrow<Q> + Ord, Q: Ord { <BTreeSet<T, A>>::get::<Q>(self, argument1) }
        fn std_is_disjoint(&self, argument1: &BTreeSet<T, A>) -> bool where T: Ord { <BTreeSet<T, A>>::is_disjoint(self, argument1) }
        fn std_is_subset(&self, argument1: &BTreeSet<T, A>) -> bool where T: Ord { <BTreeSet<T, A>>::is_subset(self, argument1) }
        fn std_is_superset(&self, argument1: &BTreeSet<T, A>) -> bool where T: Ord { <BTreeSet<T, A>>::is_superset(self, argument1) }
        fn std_first(&self) -> Option<&T> where T: Ord { <BTreeSet<T, A>>::first(self) }
        fn std_last(&self) -> Option<&T> where T: Ord { <BTreeSet<T, A>>::last(self) }
        fn std_pop_first(&mut self) -> Option<T> where T: Ord { <BTreeSet<T, A>>::pop_first(self) }
        fn std_pop_last(&mut self) -> Option<T> where T: Ord { <BTreeSet<T, A>>::pop_last(self) }
        fn std_insert(&mut self, argument1: T) -> bool where T: Ord { <BTreeSet<T, A>>::insert(self, argument1) }
        fn std_replace(&mut self, argument1: T) -> Option<T> where T: Ord { <BTreeSet<T, A>>::replace(self, argument1) }
        fn std_remove<Q: ?Sized>(&mut self, argument1: &Q) -> bool where T: Borrow<Q> + Ord, Q: Ord { <BTreeSet<T, A>>::remove::<Q>(self, argument1) }
        fn std_take<Q: ?Sized>(&mut self, argument1: &Q) -> Option<T> where T: Borrow<Q> + Ord, Q: Ord { <BTreeSet<T, A>>::take::<Q>(self, argument1) }
        fn std_retain<F>(&mut self, argument1: F) where T: Ord, F: FnMut(&T) -> bool { <BTreeSet<T, A>>::retain::<F>(self, argument1) }
        fn std_append(&mut self, argument1: &mut Self) where T: Ord, A: Clone { <BTreeSet<T, A>>::append(self, argument1) }
        fn std_split_off<Q: ?Sized + Ord>(&mut self, argument1: &Q) -> Self where T: Borrow<Q> + Ord, A: Clone { <BTreeSet<T, A>>::split_off::<Q>(self, argument1) }
        fn std_extract_if<F, R>(&mut self, argument1: R, argument2: F) -> ExtractIf<'_, T, R, F, A> where T: Ord, R: RangeBounds<T>, F: FnMut(&T) -> bool { <BTreeSet<T, A>>::extract_if::<F, R>(self, argument1, argument2) }
        fn std_iter(&self) -> Iter<'_, T> { <BTreeSet<T, A>>::iter(self) }
        fn std_len(&self) -> usize { <BTreeSet<T, A>>::len(self) }
        fn std_is_empty(&self) -> bool { <BTreeSet<T, A>>::is_empty(self) }
    }

    fn needs16<T: Ord>(_: PhantomData<(BTreeSet<T>, T,)>) where BTreeSet<T>: FromIterator<T> {}
    fn has16<T: Ord>(subject: PhantomData<(BTreeSet<T>, T,)>) {
        needs16::<T>(subject);
    }

    fn needs17<T: Ord, const N: usize>(_: PhantomData<(BTreeSet<T>, [T; N],)>) where BTreeSet<T>: From<[T; N]> {}
    fn has17<T: Ord, const N: usize>(subject: PhantomData<(BTreeSet<T>, [T; N],)>) {
        needs17::<T, N>(subject);
    }

    fn needs18<T, A: Allocator + Clone>(_: PhantomData<(BTreeSet<T, A>,)>) where BTreeSet<T, A>: IntoIterator<Item = T, IntoIter = IntoIter<T, A>> {}
    fn has18<T, A: Allocator + Clone>(subject: PhantomData<(BTreeSet<T, A>,)>) {
        needs18::<T, A>(subject);
    }

    fn needs19<'a, T, A: Allocator + Clone>(_: PhantomData<(&'a BTreeSet<T, A>,)>) where &'a BTreeSet<T, A>: IntoIterator<Item = &'a T, IntoIter = Iter<'a, T>> {}
    fn has19<'a, T, A: Allocator + Clone>(subject: PhantomData<(&'a BTreeSet<T, A>,)>) {
        needs19::<T, A>(subject);
    }

    fn needs20<'e0, T, R, F, A>(_: PhantomData<(ExtractIf<'e0, T, R, F, A>,)>) where T: fmt::Debug, A: Allocator + Clone, ExtractIf<'e0, T, R, F, A>: fmt::Debug {}
    fn has20<'e0, T, R, F, A>(subject: PhantomData<(ExtractIf<'e0, T, R, F, A>,)>) where T: fmt::Debug, A: Allocator + Clone {
        needs20::<T, R, F, A>(subject);
    }

    fn needs21<'e0, T, R, F, A: Allocator + Clone>(_: PhantomData<(ExtractIf<'e0, T, R, F, A>,)>) where T: PartialOrd, R: RangeBounds<T>, F: FnMut(&T) -> bool, ExtractIf<'e0, T, R, F, A>: Iterator<Item = T> {}
    fn has21<'e0, T, R, F, A: Allocator + Clone>(subject: PhantomData<(ExtractIf<'e0, T, R, F, A>,)>) where T: PartialOrd, R: RangeBounds<T>, F: FnMut(&T) -> bool {
        needs21::<T, R, F, A>(subject);
    }

    fn needs22<'e0, T, R, F, A: Allocator + Clone>(_: PhantomData<(ExtractIf<'e0, T, R, F, A>,)>) where T: PartialOrd, R: RangeBounds<T>, F: FnMut(&T) -> bool, ExtractIf<'e0, T, R, F, A>: FusedIterator {}
    fn has22<'e0, T, R, F, A: Allocator + Clone>(subject: PhantomData<(ExtractIf<'e0, T, R, F, A>,)>) where T: PartialOrd, R: RangeBounds<T>, F: FnMut(&T) -> bool {
        needs22::<T, R, F, A>(subject);
    }

    fn needs23<T: Ord, A: Allocator + Clone>(_: PhantomData<(BTreeSet<T, A>, T,)>) where BTreeSet<T, A>: Extend<T> {}
    fn has23<T: Ord, A: Allocator + Clone>(subject: PhantomData<(BTreeSet<T, A>, T,)>) {
        needs23::<T, A>(subject);
    }

    fn needs24<'a, T: 'a + Ord + Copy, A: Allocator + Clone>(_: PhantomData<(BTreeSet<T, A>, &'a T,)>) where BTreeSet<T, A>: Extend<&'a T> {}
    fn has24<'a, T: 'a + Ord + Copy, A: Allocator + Clone>(subject: PhantomData<(BTreeSet<T, A>, &'a T,)>) {
        needs24::<T, A>(subject);
    }

    fn needs25<T>(_: PhantomData<(BTreeSet<T>,)>) where BTreeSet<T>: Default {}
    fn has25<T>(subject: PhantomData<(BTreeSet<T>,)>) {
        needs25::<T>(subject);
    }

    fn needs26<'e0, 'e1, T: Ord + Clone, A: Allocator + Clone>(_: PhantomData<(&'e0 BTreeSet<T, A>, &'e1 BTreeSet<T, A>,)>) where &'e0 BTreeSet<T, A>: Sub<&'e1 BTreeSet<T, A>, Output = BTreeSet<T, A>> {}
    fn has26<'e0, 'e1, T: Ord + Clone, A: Allocator + Clone>(subject: PhantomData<(&'e0 BTreeSet<T, A>, &'e1 BTreeSet<T, A>,)>) {
        needs26::<T, A>(subject);
    }

    fn needs27<'e0, 'e1, T: Ord + Clone, A: Allocator + Clone>(_: PhantomData<(&'e0 BTreeSet<T, A>, &'e1 BTreeSet<T, A>,)>) where &'e0 BTreeSet<T, A>: BitXor<&'e1 BTreeSet<T, A>, Output = BTreeSet<T, A>> {}
    fn has27<'e0, 'e1, T: Ord + Clone, A: Allocator + Clone>(subject: PhantomData<(&'e0 BTreeSet<T, A>, &'e1 BTreeSet<T, A>,)>) {
        needs27::<T, A>(subject);
    }

    fn needs28<'e0, 'e1, T: Ord + Clone, A: Allocator + Clone>(_: PhantomData<(&'e0 BTreeSet<T, A>, &'e1 BTreeSet<T, A>,)>) where &'e0 BTreeSet<T, A>: BitAnd<&'e1 BTreeSet<T, A>, Output = BTreeSet<T, A>> {}
    fn has28<'e0, 'e1, T: Ord + Clone, A: Allocator + Clone>(subject: PhantomData<(&'e0 BTreeSet<T, A>, &'e1 BTreeSet<T, A>,)>) {
        needs28::<T, A>(subject);
    }

    fn needs29<'e0, 'e1, T: Ord + Clone, A: Allocator + Clone>(_: PhantomData<(&'e0 BTreeSet<T, A>, &'e1 BTreeSet<T, A>,)>) where &'e0 BTreeSet<T, A>: BitOr<&'e1 BTreeSet<T, A>, Output = BTreeSet<T, A>> {}
    fn has29<'e0, 'e1, T: Ord + Clone, A: Allocator + Clone>(subject: PhantomData<(&'e0 BTreeSet<T, A>, &'e1 BTreeSet<T, A>,)>) {
        needs29::<T, A>(subject);
    }

    fn needs30<T: Debug, A: Allocator + Clone>(_: PhantomData<(BTreeSet<T, A>,)>) where BTreeSet<T, A>: Debug {}
    fn has30<T: Debug, A: Allocator + Clone>(subject: PhantomData<(BTreeSet<T, A>,)>) {
        needs30::<T, A>(subject);
    }

    fn needs31<'e0, T>(_: PhantomData<(Iter<'e0, T>,)>) where Iter<'e0, T>: Clone {}
    fn has31<'e0, T>(subject: PhantomData<(Iter<'e0, T>,)>) {
        needs31::<T>(subject);
    }

    fn needs32<'a, T>(_: PhantomData<(Iter<'a, T>,)>) where Iter<'a, T>: Iterator<Item = &'a T> {}
    fn has32<'a, T>(subject: PhantomData<(Iter<'a, T>,)>) {
        needs32::<T>(subject);
    }

    fn needs33<'a, T>(_: PhantomData<(Iter<'a, T>,)>) where Iter<'a, T>: DoubleEndedIterator {}
    fn has33<'a, T>(subject: PhantomData<(Iter<'a, T>,)>) {
        needs33::<T>(subject);
    }

    fn needs34<'e0, T>(_: PhantomData<(Iter<'e0, T>,)>) where Iter<'e0, T>: ExactSizeIterator {}
    fn has34<'e0, T>(subject: PhantomData<(Iter<'e0, T>,)>) {
        needs34::<T>(subject);
    }

    fn needs35<'e0, T>(_: PhantomData<(Iter<'e0, T>,)>) where Iter<'e0, T>: FusedIterator {}
    fn has35<'e0, T>(subject: PhantomData<(Iter<'e0, T>,)>) {
        needs35::<T>(subject);
    }

    fn needs36<T, A: Allocator + Clone>(_: PhantomData<(IntoIter<T, A>,)>) where IntoIter<T, A>: Iterator<Item = T> {}
    fn has36<T, A: Allocator + Clone>(subject: PhantomData<(IntoIter<T, A>,)>) {
        needs36::<T, A>(subject);
    }

    fn needs37<'e0, T>(_: PhantomData<(Iter<'e0, T>,)>) where Iter<'e0, T>: Default {}
    fn has37<'e0, T>(subject: PhantomData<(Iter<'e0, T>,)>) {
        needs37::<T>(subject);
    }

    fn needs38<T, A: Allocator + Clone>(_: PhantomData<(IntoIter<T, A>,)>) where IntoIter<T, A>: DoubleEndedIterator {}
    fn has38<T, A: Allocator + Clone>(subject: PhantomData<(IntoIter<T, A>,)>) {
        needs38::<T, A>(subject);
    }

    fn needs39<T, A: Allocator + Clone>(_: PhantomData<(IntoIter<T, A>,)>) where IntoIter<T, A>: ExactSizeIterator {}
    fn has39<T, A: Allocator + Clone>(subject: PhantomData<(IntoIter<T, A>,)>) {
        needs39::<T, A>(subject);
    }

    fn needs40<T, A: Allocator + Clone>(_: PhantomData<(IntoIter<T, A>,)>) where IntoIter<T, A>: FusedIterator {}
    fn has40<T, A: Allocator + Clone>(subject: PhantomData<(IntoIter<T, A>,)>) {
        needs40::<T, A>(subject);
    }

    fn needs41<T, A>(_: PhantomData<(IntoIter<T, A>,)>) where A: Allocator + Default + Clone, IntoIter<T, A>: Default {}
    fn has41<T, A>(subject: PhantomData<(IntoIter<T, A>,)>) where A: Allocator + Default + Clone {
        needs41::<T, A>(subject);
    }

    fn needs42<'e0, T>(_: PhantomData<(Range<'e0, T>,)>) where Range<'e0, T>: Clone {}
    fn has42<'e0, T>(subject: PhantomData<(Range<'e0, T>,)>) {
        needs42::<T>(subject);
    }

    fn needs43<'a, T>(_: PhantomData<(Range<'a, T>,)>) where Range<'a, T>: Iterator<Item = &'a T> {}
    fn has43<'a, T>(subject: PhantomData<(Range<'a, T>,)>) {
        needs43::<T>(subject);
    }

    fn needs44<'a, T>(_: PhantomData<(Range<'a, T>,)>) where Range<'a, T>: DoubleEndedIterator {}
    fn has44<'a, T>(subject: PhantomData<(Range<'a, T>,)>) {
        needs44::<T>(subject);
    }

    fn needs45<'e0, T>(_: PhantomData<(Range<'e0, T>,)>) where Range<'e0, T>: FusedIterator {}
    fn has45<'e0, T>(subject: PhantomData<(Range<'e0, T>,)>) {
        needs45::<T>(subject);
    }

    fn needs46<'e0, T>(_: PhantomData<(Range<'e0, T>,)>) where Range<'e0, T>: Default {}
    fn has46<'e0, T>(subject: PhantomData<(Range<'e0, T>,)>) {
        needs46::<T>(subject);
    }

    fn needs47<'e0, T, A: Allocator + Clone>(_: PhantomData<(Difference<'e0, T, A>,)>) where Difference<'e0, T, A>: Clone {}
    fn has47<'e0, T, A: Allocator + Clone>(subject: PhantomData<(Difference<'e0, T, A>,)>) {
        needs47::<T, A>(subject);
    }

    fn needs48<'a, T: Ord, A: Allocator + Clone>(_: PhantomData<(Difference<'a, T, A>,)>) where Difference<'a, T, A>: Iterator<Item = &'a T> {}
    fn has48<'a, T: Ord, A: Allocator + Clone>(subject: PhantomData<(Difference<'a, T, A>,)>) {
        needs48::<T, A>(subject);
    }

    fn needs49<'e0, T: Ord, A: Allocator + Clone>(_: PhantomData<(Difference<'e0, T, A>,)>) where Difference<'e0, T, A>: FusedIterator {}
    fn has49<'e0, T: Ord, A: Allocator + Clone>(subject: PhantomData<(Difference<'e0, T, A>,)>) {
        needs49::<T, A>(subject);
    }

    fn needs50<'e0, T>(_: PhantomData<(SymmetricDifference<'e0, T>,)>) where SymmetricDifference<'e0, T>: Clone {}
    fn has50<'e0, T>(subject: PhantomData<(SymmetricDifference<'e0, T>,)>) {
        needs50::<T>(subject);
    }

    fn needs51<'a, T: Ord>(_: PhantomData<(SymmetricDifference<'a, T>,)>) where SymmetricDifference<'a, T>: Iterator<Item = &'a T> {}
    fn has51<'a, T: Ord>(subject: PhantomData<(SymmetricDifference<'a, T>,)>) {
        needs51::<T>(subject);
    }

    fn needs52<'e0, T: Ord>(_: PhantomData<(SymmetricDifference<'e0, T>,)>) where SymmetricDifference<'e0, T>: FusedIterator {}
    fn has52<'e0, T: Ord>(subject: PhantomData<(SymmetricDifference<'e0, T>,)>) {
        needs52::<T>(subject);
    }

    fn needs53<'e0, T, A: Allocator + Clone>(_: PhantomData<(Intersection<'e0, T, A>,)>) where Intersection<'e0, T, A>: Clone {}
    fn has53<'e0, T, A: Allocator + Clone>(subject: PhantomData<(Intersection<'e0, T, A>,)>) {
        needs53::<T, A>(subject);
    }

    fn needs54<'a, T: Ord, A: Allocator + Clone>(_: PhantomData<(Intersection<'a, T, A>,)>) where Intersection<'a, T, A>: Iterator<Item = &'a T> {}
    fn has54<'a, T: Ord, A: Allocator + Clone>(subject: PhantomData<(Intersection<'a, T, A>,)>) {
        needs54::<T, A>(subject);
    }

    fn needs55<'e0, T: Ord, A: Allocator + Clone>(_: PhantomData<(Intersection<'e0, T, A>,)>) where Intersection<'e0, T, A>: FusedIterator {}
    fn has55<'e0, T: Ord, A: Allocator + Clone>(subject: PhantomData<(Intersection<'e0, T, A>,)>) {
        needs55::<T, A>(subject);
    }

    fn needs56<'e0, T>(_: PhantomData<(Union<'e0, T>,)>) where Union<'e0, T>: Clone {}
    fn has56<'e0, T>(subject: PhantomData<(Union<'e0, T>,)>) {
        needs56::<T>(subject);
    }

    fn needs57<'a, T: Ord>(_: PhantomData<(Union<'a, T>,)>) where Union<'a, T>: Iterator<Item = &'a T> {}
    fn has57<'a, T: Ord>(subject: PhantomData<(Union<'a, T>,)>) {
        needs57::<T>(subject);
    }

    fn needs58<'e0, T: Ord>(_: PhantomData<(Union<'e0, T>,)>) where Union<'e0, T>: FusedIterator {}
    fn has58<'e0, T: Ord>(subject: PhantomData<(Union<'e0, T>,)>) {
        needs58::<T>(subject);
    }
}
