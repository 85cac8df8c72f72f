// The trace of a run, line by line: every frame as print/print.h formats it, every operation and completion,
// every fault. It is written only on request, and does not change the run.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "sim/event_queue.h"

namespace cluster::sim {

struct Packet;

class Trace {
 public:
  explicit Trace(const EventQueue& event_queue) : event_queue_(event_queue) {}
  /// Returns false if the file cannot be written.
  bool open(const std::string& path);

  bool on() const { return file_ != nullptr; }
  void line(const char* format, ...) __attribute__((format(printf, 2, 3)));
  /// Writes the fate of a frame between two hosts: "sent", "lost", "arrived"...
  void frame(const char* fate, const Packet& packet);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  const EventQueue& event_queue_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace cluster::sim
