// SIGINT and SIGTERM as a wish to stop: the step in progress is finished and the work is saved. A second
// signal ends the program at once.
#ifndef LATTICE_BASE_STOP_SIGNAL_H_
#define LATTICE_BASE_STOP_SIGNAL_H_

namespace lattice {

// In force while the object lives; one at a time. The previous handlers come back afterwards.
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
