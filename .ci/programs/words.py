import hashlib, json, subprocess, sys, threading
def work(seed, out):
    words = {}
    for i in range(30000):
        words.setdefault(str(i * seed % 997), []).append("x" * (i % 50))
    text = json.dumps(words, sort_keys=True)
    assert json.loads(text) == words
    out[seed] = hashlib.sha256(text.encode()).hexdigest()
out = {}
threads = [threading.Thread(target=work, args=(seed, out)) for seed in (3, 5, 7)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(out.items()))
child = "print(sum(len(str(i)) for i in range(50000)))"
print(subprocess.check_output([sys.executable, "-c", child]).decode())
