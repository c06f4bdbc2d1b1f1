// What a rank does when, as spans of time: for pictures, and for chrome://tracing.
#ifndef LATTICE_DIST_TIMELINE_H_
#define LATTICE_DIST_TIMELINE_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace lattice::dist {

class Timeline {
 public:
  // Steady clocks of processes on one host agree, so their spans can be laid side by side.
  using Clock = std::chrono::steady_clock;
  enum class Lane : uint8_t { kWork, kNetwork };

  // Any thread. Spans beyond a million are not kept.
  void Add(Lane lane, const char* name, Clock::time_point begin, Clock::time_point end);

  // As trace events in JSON, one process per rank and one thread per lane. Throws Error.
  void Write(const std::filesystem::path& file, int rank) const;

 private:
  struct Span {
    Lane lane;
    const char* name;
    Clock::time_point begin, end;
  };

  mutable std::mutex mutex_;
  std::vector<Span> spans_;
};

// The time of its own life on the lane of work; nothing without a timeline. The name must outlive the timeline.
class Span {
 public:
  Span(Timeline* timeline, const char* name) : timeline_(timeline), name_(name) {}
  ~Span() {
    if (timeline_ != nullptr) timeline_->Add(Timeline::Lane::kWork, name_, begin_, Timeline::Clock::now());
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  Timeline* timeline_;
  const char* name_;
  Timeline::Clock::time_point begin_ = Timeline::Clock::now();
};

}  // namespace lattice::dist

#endif  // LATTICE_DIST_TIMELINE_H_
