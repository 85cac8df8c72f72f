#include "os/progress_thread.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <exception>
#include <list>
#include <mutex>
#include <utility>

#include "os/detached_thread.h"
#include "os/system_clock.h"
#include "os/wait_set.h"

namespace cluster::os {
namespace {

constexpr std::size_t kEventsPerTurn = 32;
/// The interval between the calls of a client whose descriptor cannot be watched, and the time until the next
/// call after a client has thrown an exception.
constexpr Duration kPollInterval = std::chrono::milliseconds(1);

class ProgressThread;

struct Client {
  Client(std::function<NextWake()> function, ProgressThread& its) : run(std::move(function)), thread(its) {}

  std::function<NextWake()> run;
  ProgressThread& thread;
  std::atomic<bool> hurried{false};
  Time due{};
  int watched = -1;
  bool readable = false;
};

class ProgressThread {
 public:
  using Entry = std::list<Client>::iterator;

  /// Returns the thread of this process. The first call starts it. On failure, returns null and sets `error`
  /// to an errno.
  static ProgressThread* instance(int& error);

  Entry add(std::function<NextWake()> run);
  /// Waits until a running call of the client has returned, and removes the client.
  void remove(Entry client);
  void hurry(Client& client) {
    client.hurried = true;
    signal_->raise();
  }
  bool of_this_process() const { return process_ == getpid(); }

 private:
  bool open();
  [[noreturn]] void serve();
  void collect_readable();
  void run(Client& client, Time now);
  void watch(Client& client, int descriptor);

  std::mutex mutex_;  ///< held while clients run
  std::list<Client> clients_;
  SystemClock clock_;
  std::unique_ptr<WaitSet> wait_set_;
  std::unique_ptr<Alarm> alarm_;    ///< goes off when the next client is due
  std::unique_ptr<Signal> signal_;  ///< raised if a client is hurried
  const pid_t process_ = getpid();
};

ProgressThread* ProgressThread::instance(int& error) {
  static std::mutex& mutex = *new std::mutex;
  static ProgressThread* thread = nullptr;
  const std::lock_guard guard(mutex);
  error = 0;
  if (thread != nullptr && thread->of_this_process()) return thread;
  auto* const fresh = new ProgressThread;
  const auto body = [](void* self) -> void* { static_cast<ProgressThread*>(self)->serve(); };
  error = fresh->open() ? start_detached_thread(body, fresh) : errno;
  if (error != 0) {
    delete fresh;
    return nullptr;
  }
  thread = fresh;
  return thread;
}

bool ProgressThread::open() {
  wait_set_ = WaitSet::open();
  alarm_ = Alarm::open();
  signal_ = Signal::open();
  return wait_set_ != nullptr && alarm_ != nullptr && signal_ != nullptr &&
         wait_set_->add(alarm_->descriptor(), nullptr) && wait_set_->add(signal_->descriptor(), nullptr);
}

ProgressThread::Entry ProgressThread::add(std::function<NextWake()> run) {
  const std::lock_guard guard(mutex_);
  clients_.emplace_back(std::move(run), *this);
  alarm_->set(Time::min());
  return std::prev(clients_.end());
}

void ProgressThread::remove(Entry client) {
  const std::lock_guard guard(mutex_);
  watch(*client, -1);
  clients_.erase(client);
}

void ProgressThread::serve() {
  for (;;) {
    {
      const std::lock_guard guard(mutex_);
      signal_->lower();  // before the loop reads the flags `hurried`, so that the loop misses none
      collect_readable();
      const Time now = clock_.now();
      Time next = kNever;
      for (Client& client : clients_) {
        if (client.hurried.exchange(false) || client.readable || client.due <= now) run(client, now);
        next = std::min(next, client.due);
      }
      alarm_->set_lazily(next, now);
    }
    wait_set_->sleep(std::nullopt);
  }
}

void ProgressThread::collect_readable() {
  std::array<WaitSet::Event, kEventsPerTurn> events;
  const std::size_t count = wait_set_->collect(events);
  for (std::size_t i = 0; i < count; ++i) {
    if (events[i].owner != nullptr) static_cast<Client*>(events[i].owner)->readable = true;
  }
}

void ProgressThread::run(Client& client, Time now) {
  client.readable = false;
  NextWake next{kPollInterval};
  try {
    next = client.run();
  } catch (const std::exception&) {
    // An exception, for example for lack of memory, must not end the process.
  }
  if (next.descriptor != client.watched) watch(client, next.descriptor);
  if (next.descriptor != client.watched) next.after = std::min(next.after, kPollInterval);
  client.due = next.after == NextWake::kUntilReadable ? kNever : now + next.after;
}

void ProgressThread::watch(Client& client, int descriptor) {
  if (client.watched >= 0) wait_set_->remove(std::exchange(client.watched, -1));
  if (descriptor >= 0 && wait_set_->add(descriptor, &client)) client.watched = descriptor;
}

}  // namespace

std::shared_ptr<void> start_progress_client(std::function<NextWake()> run, int& error) {
  ProgressThread* const thread = ProgressThread::instance(error);
  if (thread == nullptr) return nullptr;
  // A forked child removes nothing: its copy of the mutex may be locked forever, and the child shares the
  // wait set with its parent.
  const ProgressThread::Entry entry = thread->add(std::move(run));
  return {&*entry, [thread, entry](Client*) {
            if (thread->of_this_process()) thread->remove(entry);
          }};
}

void hurry_progress_client(void* client) {
  Client& hurried = *static_cast<Client*>(client);
  if (hurried.thread.of_this_process()) hurried.thread.hurry(hurried);
}

}  // namespace cluster::os
