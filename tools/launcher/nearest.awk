# awk -v word=trian -f nearest.awk help.txt: prints the subcommand that `word` begins or is at most two typing errors away
# from (a letter too many, missing or wrong, or two swapped); nothing when there is none.
function distance(a, b,    i, j, best, d) {
  for (i = 0; i <= length(a); i++) d[i, 0] = i
  for (j = 0; j <= length(b); j++) d[0, j] = j
  for (i = 1; i <= length(a); i++) {
    for (j = 1; j <= length(b); j++) {
      best = d[i - 1, j - 1] + (substr(a, i, 1) != substr(b, j, 1))
      if (d[i - 1, j] + 1 < best) best = d[i - 1, j] + 1
      if (d[i, j - 1] + 1 < best) best = d[i, j - 1] + 1
      if (i > 1 && j > 1 && substr(a, i - 1, 2) == substr(b, j, 1) substr(b, j - 1, 1) && d[i - 2, j - 2] + 1 < best)
        best = d[i - 2, j - 2] + 1
      d[i, j] = best
    }
  }
  return d[length(a), length(b)]
}

/^  [a-z]+ / {
  far = index($1, word) == 1 ? 0.5 : distance(word, $1)
  if (found == "" || far < nearest) { nearest = far; found = $1 }
}

# Two errors in three letters would make anything of anything.
END { if (nearest <= 2 && nearest < length(word) - 1) print found }
