#include "conformance/link_station.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "support/yield_processor.h"

namespace cluster::test {
namespace {

std::byte filler(std::uint32_t number, std::size_t at) {
  return static_cast<std::byte>(number * 31 + at * 7 + at / 256);
}

Numbered check(ConstBytes frame, const link::Path& from) {
  Numbered result{0, frame.size(), true, from};
  std::memcpy(&result.number, frame.data() + 4, sizeof result.number);
  for (std::size_t i = kNumberedMin; i < frame.size(); ++i)
    result.intact &= frame[i] == filler(result.number, i);
  return result;
}

void split(const link::InFrame& arrival, std::vector<Numbered>& frames) {
  ConstBytes rest = arrival.bytes;
  while (!rest.empty()) {
    std::uint32_t size = 0;
    if (rest.size() >= kNumberedMin) std::memcpy(&size, rest.data(), sizeof size);
    if (size < kNumberedMin || size > rest.size()) {
      frames.push_back({0, rest.size(), false, arrival.from});
      return;
    }
    frames.push_back(check(rest.first(size), arrival.from));
    frames.back().joined = size < arrival.bytes.size();
    frames.back().segment = arrival.segment;
    rest = rest.subspan(size);
  }
}

}  // namespace

std::vector<std::byte> numbered(std::uint32_t number, std::size_t size) {
  std::vector<std::byte> frame(size);
  const auto length = static_cast<std::uint32_t>(size);
  std::memcpy(frame.data(), &length, sizeof length);
  std::memcpy(frame.data() + 4, &number, sizeof number);
  for (std::size_t i = kNumberedMin; i < size; ++i) frame[i] = filler(number, i);
  return frame;
}

std::size_t Station::send_once(const link::Path& path, const std::vector<std::vector<std::byte>>& frames) {
  std::vector<link::OutFrame> burst(frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    burst[i].path = &path;
    burst[i].add(ConstBytes(frames[i]).first(5));
    burst[i].add(ConstBytes(frames[i]).subspan(5));
  }
  return link->send_burst(burst);
}

void Station::send(const link::Path& path, const std::vector<std::vector<std::byte>>& frames) {
  std::vector<std::vector<std::byte>> rest = frames;
  eventually([&] {
    const std::size_t taken = send_once(path, rest);
    rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(taken));
    return rest.empty();
  });
}

std::vector<Numbered> Station::poll() {
  std::array<link::InFrame, link::kBurstMax> arrivals;
  std::vector<Numbered> frames;
  const std::size_t count = link->receive_burst(arrivals);
  for (std::size_t i = 0; i < count; ++i) split(arrivals[i], frames);
  return frames;
}

std::vector<Numbered> Station::receive(std::size_t count) {
  std::vector<Numbered> frames;
  eventually([&] {
    const std::vector<Numbered> more = poll();
    frames.insert(frames.end(), more.begin(), more.end());
    return frames.size() >= count;
  });
  return frames;
}

std::vector<link::PathError> Station::await_path_error() {
  std::array<link::PathError, 8> path_errors;
  std::size_t count = 0;
  eventually([&] { return (count = link->read_path_errors(path_errors)) != 0; });
  return {path_errors.begin(), path_errors.begin() + static_cast<std::ptrdiff_t>(count)};
}

bool eventually(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (;;) {
    if (done()) return true;
    if (std::chrono::steady_clock::now() > end) return false;
    yield_processor();
  }
}

}  // namespace cluster::test
