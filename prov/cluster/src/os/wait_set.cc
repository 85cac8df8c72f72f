#include "os/wait_set.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <utility>

#include "os/system_clock.h"

namespace cluster::os {
namespace {

constexpr std::size_t kEventsMax = 32;

}  // namespace

std::unique_ptr<WaitSet> WaitSet::open() {
  Descriptor set(epoll_create1(EPOLL_CLOEXEC));
  return std::unique_ptr<WaitSet>(set ? new WaitSet(std::move(set)) : nullptr);
}

bool WaitSet::add(int descriptor, void* owner) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.ptr = owner;
  return epoll_ctl(set_.number(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void WaitSet::remove(int descriptor) { epoll_ctl(set_.number(), EPOLL_CTL_DEL, descriptor, nullptr); }

std::size_t WaitSet::collect(std::span<Event> events) const {
  std::array<epoll_event, kEventsMax> ready;
  const int most = static_cast<int>(std::min(events.size(), ready.size()));
  const int count = epoll_wait(set_.number(), ready.data(), most, 0);
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    events[at] = {ready[at].data.ptr, (ready[at].events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0};
  }
  return static_cast<std::size_t>(std::max(count, 0));
}

WaitSet::Wake WaitSet::sleep(std::optional<std::chrono::milliseconds> limit) const {
  constexpr auto kLongest = std::chrono::milliseconds(std::numeric_limits<int>::max());
  const int timeout = limit ? static_cast<int>(std::clamp(*limit, 0ms, kLongest).count()) : -1;
  epoll_event ready;
  return epoll_pwait(set_.number(), &ready, 1, timeout, nullptr) == 0 ? Wake::timeout : Wake::event;
}

std::unique_ptr<Alarm> Alarm::open() {
  Descriptor timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  return std::unique_ptr<Alarm>(timer ? new Alarm(std::move(timer)) : nullptr);
}

void Alarm::set(Time when) {
  set_ = when;
  itimerspec timer{};
  if (when != kNever) {
    // A value of zero would stop the timer.
    const Duration since = std::max(when.time_since_epoch(), Duration{1});
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
    timer.it_value.tv_sec = seconds.count();
    timer.it_value.tv_nsec = (since - seconds).count();
  }
  timerfd_settime(timer_.number(), TFD_TIMER_ABSTIME, &timer, nullptr);
}

std::unique_ptr<Signal> Signal::open() {
  Descriptor event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return std::unique_ptr<Signal>(event ? new Signal(std::move(event)) : nullptr);
}

void Signal::raise() {
  const std::lock_guard guard(lock_);
  if (std::exchange(raised_, true)) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event_.number(), &one, sizeof one);
}

void Signal::lower() {
  const std::lock_guard guard(lock_);
  if (!std::exchange(raised_, false)) return;
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(event_.number(), &count, sizeof count);
}

void sleep_shortest() {
  const timespec shortest{0, 1};
  nanosleep(&shortest, nullptr);
}

void sleep_shortest_cancellable() {
  const timespec shortest{0, 1};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &shortest, nullptr);
}

void yield_or_sleep(std::uint32_t times, std::uint32_t times_per_sleep) {
  times % times_per_sleep == 0 ? sleep_shortest() : static_cast<void>(sched_yield());
}

std::uint64_t timed_yield() {
  SystemClock clock;
  const std::uint64_t gone = clock.ticks();
  sched_yield();
  return clock.ticks() - gone;
}

}  // namespace cluster::os
