#include "os/progress_thread.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <mutex>
#include <utility>

#include "os/background_thread.h"
#include "os/system_clock.h"
#include "os/wait_set.h"

namespace cluster::os {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024;
constexpr std::size_t kCallsPerRound = 32;
/// For a ward that wants to be listened to and has no descriptor.
constexpr Duration kDeaf = std::chrono::milliseconds(1);

class ProgressThread {
 public:
  struct Place {
    Client ward;
    Time due{};
    int listening_to = -1;
    bool called = false;
  };

  /// The one of this process, started on first use; null with an errno in `error`. Never destroyed:
  /// the thread outlives static destructors.
  static ProgressThread* instance(int& error);

  std::list<Place>::iterator add(Client ward) {
    const std::lock_guard guard(mutex_);
    places_.push_back({std::move(ward), Time{}, -1, false});
    alarm_->set(Time::min());
    return std::prev(places_.end());
  }
  void remove(std::list<Place>::iterator place) {
    const std::lock_guard guard(mutex_);
    listen(*place, false);
    places_.erase(place);
  }
  bool of_this_process() const { return process_ == getpid(); }

 private:
  bool open();
  static void* run(void* self) { static_cast<ProgressThread*>(self)->serve(); }
  [[noreturn]] void serve();
  void take_calls();
  void visit(Place& place, Time now);
  void listen(Place& place, bool wanted);

  std::mutex mutex_;  ///< held during visits: remove() waits for them
  std::list<Place> places_;
  SystemClock clock_;
  std::unique_ptr<WaitSet> calls_;
  std::unique_ptr<Alarm> alarm_;
  const pid_t process_ = getpid();
};

ProgressThread* ProgressThread::instance(int& error) {
  static std::mutex& mutex = *new std::mutex;
  static ProgressThread* progress_client = nullptr;
  const std::lock_guard guard(mutex);
  error = 0;
  if (progress_client != nullptr && progress_client->of_this_process()) return progress_client;
  auto* const fresh = new ProgressThread;
  error = fresh->open() ? start_background_thread("cluster-attend", kStackBytes, &ProgressThread::run, fresh)
                        : EMFILE;
  if (error != 0) {
    delete fresh;
    return nullptr;
  }
  progress_client = fresh;
  return progress_client;
}

bool ProgressThread::open() {
  calls_ = WaitSet::open();
  alarm_ = Alarm::open();
  return calls_ != nullptr && alarm_ != nullptr && calls_->add(alarm_->descriptor(), nullptr);
}

void ProgressThread::serve() {
  for (;;) {
    {
      const std::lock_guard guard(mutex_);
      take_calls();
      const Time now = clock_.now();
      Time next = kNever;
      for (Place& place : places_) {
        if (place.called || place.due <= now) visit(place, now);
        next = std::min(next, place.due);
      }
      alarm_->set(next);
    }
    calls_->sleep(std::nullopt);
  }
}

void ProgressThread::take_calls() {
  std::array<WaitSet::Event, kCallsPerRound> events;
  const std::size_t count = calls_->collect(events);
  for (std::size_t i = 0; i < count; ++i) {
    if (events[i].owner != nullptr) static_cast<Place*>(events[i].owner)->called = true;
  }
}

void ProgressThread::visit(Place& place, Time now) {
  place.called = false;
  NextWake rest = place.ward.visit();
  if (rest.listening != (place.listening_to >= 0)) listen(place, rest.listening);
  if (rest.listening && place.listening_to < 0) rest.length = std::min(rest.length, kDeaf);
  place.due = rest.length == NextWake::kUntilReadable ? kNever : now + rest.length;
}

void ProgressThread::listen(Place& place, bool wanted) {
  if (place.listening_to >= 0) calls_->remove(std::exchange(place.listening_to, -1));
  if (!wanted) return;
  const int descriptor = place.ward.descriptor();
  if (descriptor >= 0 && calls_->add(descriptor, &place)) place.listening_to = descriptor;
}

/// What start_progress_client hands out.
class Handle {
 public:
  Handle(ProgressThread& progress_client, std::list<ProgressThread::Place>::iterator place)
      : progress_client_(progress_client), place_(place) {}
  ~Handle() {
    // In a forked child the mutex may have been inherited locked, and nobody visits.
    if (progress_client_.of_this_process()) progress_client_.remove(place_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

 private:
  ProgressThread& progress_client_;
  const std::list<ProgressThread::Place>::iterator place_;
};

}  // namespace

std::shared_ptr<void> start_progress_client(Client ward, Log& log) {
  int error = 0;
  ProgressThread* const progress_client = ProgressThread::instance(error);
  if (progress_client == nullptr) {
    log.warn("no thread to attend to engines (%s); peers wait while the application does not poll",
             std::strerror(error));
    return nullptr;
  }
  return std::make_shared<Handle>(*progress_client, progress_client->add(std::move(ward)));
}

}  // namespace cluster::os
