#include "os/attendant.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "os/background_thread.h"

namespace cluster::os {
namespace {

constexpr std::chrono::milliseconds kSoon{1};
constexpr std::chrono::milliseconds kAtLeisure{10};
constexpr std::size_t kStackBytes = 256 * 1024;

class Attendant {
 public:
  /// The one of this process, started on first use; null with an errno in `error`. Never destroyed:
  /// the thread outlives static destructors.
  static Attendant* instance(int& error);

  std::uint64_t add(std::function<bool()> visit) {
    const std::lock_guard guard(mutex_);
    visits_.emplace(++last_, std::move(visit));
    return last_;
  }
  void remove(std::uint64_t place) {
    const std::lock_guard guard(mutex_);
    visits_.erase(place);
  }
  bool of_this_process() const { return process_ == getpid(); }

 private:
  static void* run(void* self) {
    static_cast<Attendant*>(self)->serve();
  }
  [[noreturn]] void serve();

  std::mutex mutex_;  ///< held during visits: remove() waits for them
  std::map<std::uint64_t, std::function<bool()>> visits_;
  std::uint64_t last_ = 0;
  const pid_t process_ = getpid();
};

Attendant* Attendant::instance(int& error) {
  static std::mutex& mutex = *new std::mutex;
  static Attendant* attendant = nullptr;
  const std::lock_guard guard(mutex);
  error = 0;
  if (attendant != nullptr && attendant->of_this_process()) return attendant;
  auto* const fresh = new Attendant;
  error = start_background_thread("cluster-attend", kStackBytes, &Attendant::run, fresh);
  if (error != 0) {
    delete fresh;
    return nullptr;
  }
  attendant = fresh;
  return attendant;
}

void Attendant::serve() {
  for (;;) {
    bool soon = false;
    {
      const std::lock_guard guard(mutex_);
      for (auto& [place, visit] : visits_) soon |= visit();
    }
    std::this_thread::sleep_for(soon ? kSoon : kAtLeisure);
  }
}

/// What start_attendant hands out.
class Place {
 public:
  Place(Attendant& attendant, std::uint64_t place) : attendant_(attendant), place_(place) {}
  ~Place() {
    // In a forked child the mutex may have been inherited locked, and nobody visits.
    if (attendant_.of_this_process()) attendant_.remove(place_);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  Attendant& attendant_;
  const std::uint64_t place_;
};

}  // namespace

std::shared_ptr<void> start_attendant(std::function<bool()> visit, Log& log) {
  int error = 0;
  Attendant* const attendant = Attendant::instance(error);
  if (attendant == nullptr) {
    log.warn("no thread to attend to engines (%s); peers wait while the application does not poll",
             std::strerror(error));
    return nullptr;
  }
  return std::make_shared<Place>(*attendant, attendant->add(std::move(visit)));
}

}  // namespace cluster::os
