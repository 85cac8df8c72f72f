// Ping-pong by size between two hosts of a PVM: `pvm_pingpong HOST`, started in another host; prints a line for each size and route,
// with half of the median round trip.
//
// The route through the daemons uses UDP between hosts; the direct one uses a TCP connection between the two tasks.
#include <pvm3.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

constexpr int tag = 7;
constexpr std::array sizes{8, 64, 1024, 4096, 16384, 65536, 262144, 1048576};
constexpr int repetitions_most = 100, repetitions_least = 5, bytes_of_size = 2 << 20;

void send_bytes(int task, std::vector<char>& bytes) {
  pvm_initsend(PvmDataRaw);
  pvm_pkbyte(bytes.data(), static_cast<int>(bytes.size()), 1);
  pvm_send(task, tag);
}

// Takes as many bytes as the message has; an empty result is the end.
std::vector<char> receive_bytes(int task) {
  int length = 0;
  pvm_bufinfo(pvm_recv(task, tag), &length, nullptr, nullptr);
  std::vector<char> bytes(static_cast<size_t>(length));
  pvm_upkbyte(bytes.data(), length, 1);
  return bytes;
}

int answer(int parent) {
  int route = PvmRouteDirect;
  pvm_recv(parent, tag);
  pvm_upkint(&route, 1, 1);
  pvm_setopt(PvmRoute, route);
  for (auto bytes = receive_bytes(parent); !bytes.empty(); bytes = receive_bytes(parent))
    send_bytes(parent, bytes);
  return 0;
}

bool measure(int task, const char* route, int size) {
  std::vector<char> bytes(static_cast<size_t>(size));
  for (size_t at = 0; at < bytes.size(); ++at) bytes[at] = static_cast<char>(at * 31 % 251);
  const int repetitions = std::clamp(bytes_of_size / size, repetitions_least, repetitions_most);
  send_bytes(task, bytes);  // The first one also makes the connection.
  bool right = receive_bytes(task) == bytes;
  std::vector<double> passed(static_cast<size_t>(repetitions));
  for (double& microseconds : passed) {
    const auto begun = std::chrono::steady_clock::now();
    send_bytes(task, bytes);
    right = receive_bytes(task) == bytes && right;
    microseconds =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begun).count();
  }
  const auto middle = passed.begin() + repetitions / 2;
  std::nth_element(passed.begin(), middle, passed.end());
  std::printf("%s %d %.1f %s\n", route, size, *middle / 2, right ? "right" : "wrong");
  return right;
}

}  // namespace

int main(int count, char** words) {
  if (const int parent = pvm_parent(); parent > 0) {
    answer(parent);
    pvm_exit();
    return 0;
  }
  if (count != 2) return std::fprintf(stderr, "usage: pvm_pingpong HOST\n"), 2;
  bool right = true;
  for (int route : {PvmDontRoute, PvmRouteDirect}) {
    int task = 0;
    char program[] = "pvm_pingpong";
    if (pvm_spawn(program, nullptr, PvmTaskHost, words[1], 1, &task) != 1)
      return std::fprintf(stderr, "no task on %s\n", words[1]), 1;
    pvm_setopt(PvmRoute, route);
    pvm_initsend(PvmDataRaw);
    pvm_pkint(&route, 1, 1);
    pvm_send(task, tag);
    for (const int size : sizes)
      right = measure(task, route == PvmRouteDirect ? "tcp" : "udp", size) && right;
    std::vector<char> end;
    send_bytes(task, end);
  }
  pvm_exit();
  return right ? 0 : 1;
}
