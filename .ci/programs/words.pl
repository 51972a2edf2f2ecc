my %words;
for my $i (1 .. 100000) { push @{$words{$i * 7919 % 5003}}, "word" x ($i % 7) }
my @sorted = sort { @{$words{$a}} <=> @{$words{$b}} || $a <=> $b } keys %words;
my $text = join ",", map { join "-", @{$words{$_}} } @sorted;
(my $other = $text) =~ s/(w)(o)(rd)/$3$2$1/g;
print length($text), " ", unpack("%32C*", $other), " @sorted[0 .. 20]\n";
