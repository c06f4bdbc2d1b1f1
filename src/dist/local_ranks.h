// Starts the ranks of a training on this host as processes of their own, and ends with them.
#ifndef LATTICE_DIST_LOCAL_RANKS_H_
#define LATTICE_DIST_LOCAL_RANKS_H_

namespace lattice::dist {

// Runs this program again, `ranks` times with the same arguments, each with the environment variables of its
// place, over the loopback interface. SIGINT and SIGTERM go on to them. When one fails, the others get some
// seconds to say why and to end, then are ended. Returns 0, or the exit code of the first that failed (128 +
// signal if one ended it). `threads` per rank, unless OMP_NUM_THREADS says so already.
int RunRanks(int ranks, int threads);

}  // namespace lattice::dist

#endif  // LATTICE_DIST_LOCAL_RANKS_H_
