# The end of what each failed test printed, from ctest's LastTest.log.
/^[0-9]+\/[0-9]+ Test: / { name = $3; count = 0 }
{ lines[count++] = $0 }
/^Test Failed\./ {
  printf "\n==== %s ====\n", name
  for (i = count > 60 ? count - 60 : 0; i < count; i++) print lines[i]
  count = 0
}
