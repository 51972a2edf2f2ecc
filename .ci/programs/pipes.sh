for i in {1..200}; do
    echo "$i $((i * 7919 % 1000)) $(printf %0${i}d 7)"
done | sort -k2n | tr a-z A-Z
seq 200000 | sort -R --random-source=/bin/sh --parallel=2 | sha256sum
