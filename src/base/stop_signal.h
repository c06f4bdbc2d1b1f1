// SIGINT and SIGTERM as a request to stop, so that a program can finish its step and save its work. A second
// signal ends the program at once.
#ifndef LATTICE_BASE_STOP_SIGNAL_H_
#define LATTICE_BASE_STOP_SIGNAL_H_

namespace lattice {

// Handles the signals while the object lives, and restores the previous handlers afterwards. At most one
// object at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool requested() const;
};

}  // namespace lattice

#endif  // LATTICE_BASE_STOP_SIGNAL_H_
