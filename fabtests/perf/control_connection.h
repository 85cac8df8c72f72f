// The TCP connection between the two sides of a measurement. It carries addresses, commands and results, and serves as
// a barrier. Nothing is sent over it while a measurement runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

namespace perf {

class ControlConnection {
 public:
  /// Waits for the other side on a free port, which is passed to `announce`.
  static ControlConnection answer(const std::function<void(std::uint16_t)>& announce);
  static ControlConnection call(const std::string& host, std::uint16_t port);

  ControlConnection(ControlConnection&& other) noexcept;
  ControlConnection& operator=(ControlConnection&&) = delete;
  ~ControlConnection();

  void send(const void* data, std::size_t size);
  void receive(void* data, std::size_t size);
  bool readable() const;

  template <typename Value>
  void put(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    send(&value, sizeof value);
  }
  template <typename Value>
  Value take() {
    static_assert(std::is_trivially_copyable_v<Value>);
    Value value;
    receive(&value, sizeof value);
    return value;
  }
  void put_blob(const std::string& blob);
  std::string take_blob();
  /// Sends mine, returns theirs.
  std::string exchange(const std::string& mine);
  /// Returns when both sides are here; meanwhile `progress` keeps the measured transport going.
  void meet(const std::function<void()>& progress);

 private:
  explicit ControlConnection(int socket) : socket_(socket) {}
  int socket_;
};

}  // namespace perf
