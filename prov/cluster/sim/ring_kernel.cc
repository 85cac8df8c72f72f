#include "sim/ring_kernel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

namespace cluster::sim {

void RingKernelModel::open(std::uint64_t socket, Holder holder) { sockets_[socket].holders = {holder}; }

bool RingKernelModel::hold(std::uint64_t socket, Holder holder) {
  const auto found = sockets_.find(socket);
  if (found == sockets_.end()) return false;
  found->second.holders.push_back(holder);
  return true;
}

bool RingKernelModel::holds(std::uint64_t socket, Holder holder) const {
  const auto found = sockets_.find(socket);
  return found != sockets_.end() && std::ranges::count(found->second.holders, holder) != 0;
}

void RingKernelModel::close(std::uint64_t socket, Holder holder) {
  const auto found = sockets_.find(socket);
  if (found == sockets_.end()) return;
  std::erase(found->second.holders, holder);
  if (found->second.holders.empty()) remove(socket);
}

void RingKernelModel::close(Holder holder) {
  std::vector<std::uint64_t> all;
  for (const auto& [socket, its] : sockets_) all.push_back(socket);
  for (const std::uint64_t socket : all) close(socket, holder);
}

void RingKernelModel::remove(std::uint64_t socket) {
  std::vector<std::uint64_t>& array = arrays_[sockets_.at(socket).fanout];
  const auto place = std::ranges::find(array, socket);
  if (place != array.end()) {
    *place = array.back();
    array.pop_back();
  }
  sockets_.erase(socket);
}

void RingKernelModel::link(std::uint64_t socket) { arrays_[sockets_.at(socket).fanout].push_back(socket); }

void RingKernelModel::enter_fanout(std::uint64_t socket, std::uint32_t id) {
  sockets_.at(socket).fanout = id;
  if (up_) link(socket);
}

std::size_t RingKernelModel::sockets_in_fanout(std::uint32_t id) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(sockets_, [&](const auto& entry) { return entry.second.fanout == id; }));
}

void RingKernelModel::set_up(bool up) {
  up_ = up;
  arrays_.clear();
  if (!up) return;
  for (const auto& [socket, its] : sockets_) {
    if (its.fanout != 0) link(socket);
  }
}

std::vector<std::uint64_t> RingKernelModel::deliver(const SocketAddress& address) const {
  std::array<unsigned char, 28> packet{0x45};
  std::memcpy(&packet[16], address.ip().data(), 4);
  packet[22] = static_cast<unsigned char>(address.port() >> 8);
  packet[23] = static_cast<unsigned char>(address.port());
  std::vector<std::uint64_t> receivers;
  for (const auto& [id, array] : arrays_) {
    if (id == 0 || array.empty()) continue;
    const auto program = programs_.find(id);
    const std::uint32_t number = program == programs_.end() ? 0 : run_program(program->second, packet);
    const std::uint64_t socket = array[number % array.size()];
    if (sockets_.at(socket).filter == address) receivers.push_back(socket);
  }
  return receivers;
}

std::uint32_t run_program(const os::FilterProgram& program, std::span<const unsigned char> packet) {
  std::uint32_t value = 0;
  for (std::size_t at = 0; at < program.size(); ++at) {
    const sock_filter& step = program[at];
    const auto load = [&](std::size_t width) {
      value = 0;
      for (std::size_t i = 0; i < width; ++i) value = value << 8 | packet[step.k + i];
    };
    switch (step.code) {
      case BPF_LD | BPF_B | BPF_ABS: load(1); break;
      case BPF_LD | BPF_H | BPF_ABS: load(2); break;
      case BPF_LD | BPF_W | BPF_ABS: load(4); break;
      case BPF_JMP | BPF_JA: at += step.k; break;
      case BPF_JMP | BPF_JEQ | BPF_K: at += value == step.k ? step.jt : step.jf; break;
      case BPF_JMP | BPF_JGE | BPF_K: at += value >= step.k ? step.jt : step.jf; break;
      case BPF_RET | BPF_K: return step.k;
      default: throw std::logic_error("the model of the kernel does not know this instruction");
    }
  }
  throw std::logic_error("a program does not end");
}

}  // namespace cluster::sim
