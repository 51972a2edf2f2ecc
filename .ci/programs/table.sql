create table t (a integer primary key, b text);
with recursive c (x) as (select 1 union all select x + 1 from c where x < 100000)
    insert into t select x, hex(x * 7919) from c;
create index i on t (b);
delete from t where a % 3 = 0;
select count(*), sum(length(b)), max(b) from t;
select a, b from t order by b desc limit 5;
select group_concat(b, ',') from (select b from t where a < 5000);
