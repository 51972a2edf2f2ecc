set -eu
# Builds a small repository in the folder $1, the same each time, and prints its history.
export GIT_AUTHOR_DATE='2000-01-01T00:00:00Z' GIT_COMMITTER_DATE='2000-01-01T00:00:00Z'
export HOME=$1 GIT_CONFIG_NOSYSTEM=1
rm -rf "$1/repository"
mkdir "$1/repository"
cp -r ccmalloc/src "$1/repository/src"
cd "$1/repository"
git init -q -b main .
git config user.name ci && git config user.email ci@localhost
for i in 1 2 3 4 5; do
    seq $((i * 1000)) >"numbers$((i % 2))"
    git add -A && git commit -q -m "commit $i"
done
git repack -q -a -d --threads=2 && git fsck --strict --no-progress
git log --stat -p --format=%H | sha256sum
git grep -c unsafe | sort
