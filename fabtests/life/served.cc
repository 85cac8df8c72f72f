// A server that may be killed at any moment, and many clients of it in one process.
//
//   served serve PORT LIFE        answers every request with the number of its life; says its address
//   served call COUNT             reads the server's address; COUNT endpoints ask it, each until it has an answer of the life that
//                                 it has not heard before; says "served <life>" when all have one
//
// A client notices the end of the server by the receive that waits for it alone, and asks again until it is answered.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "message_endpoint.h"

namespace {

using fabtests::MessageEndpoint;
using fabtests::must;

constexpr std::size_t kBytes = 128;  // of a request: the address that the answer goes to
constexpr unsigned kIdleMicroseconds = 1000;

struct Message {
  fi_context context{};
  char text[kBytes] = {};
  bool request = false;  ///< posted as a receive
};

class Caller : public MessageEndpoint {
 public:
  explicit Caller(const char* port) : MessageEndpoint(FI_MSG | FI_DIRECTED_RECV, port) {
    must(fi_enable(endpoint_), "fi_enable");
  }

 protected:
  /// The next completed operation, and whether it succeeded; null: none.
  Message* next(bool& good) {
    fi_cq_msg_entry entry{};
    long got = fi_cq_read(cq_, &entry, 1);
    if (got == -FI_EAGAIN) return nullptr;
    good = got == 1;
    if (good) return static_cast<Message*>(entry.op_context);
    fi_cq_err_entry error{};
    must(fi_cq_readerr(cq_, &error, 0), "fi_cq_readerr");
    return static_cast<Message*>(error.op_context);
  }
  /// False: there is no space for it now.
  bool post(Message& message, fi_addr_t peer) {
    const long status = message.request
                            ? fi_recv(endpoint_, message.text, kBytes, nullptr, peer, &message.context)
                            : fi_send(endpoint_, message.text, kBytes, nullptr, peer, &message.context);
    if (status == -FI_EAGAIN) return false;
    must(status, "posting");
    return true;
  }
};

class Server : public Caller {
 public:
  Server(const char* port, const char* life) : Caller(port), life_(life) {
    for (Message& each : requests_) {
      each.request = true;
      post(each, FI_ADDR_UNSPEC);
    }
  }

  bool progress() {
    answer_waiting();
    bool good = false;
    Message* const ended = next(good);
    if (ended == nullptr) return false;
    if (ended->request) {
      if (good) owed_.push_back(client(ended->text));
      while (!post(*ended, FI_ADDR_UNSPEC)) {
      }
    } else {
      delete ended;
    }
    return true;
  }

 private:
  fi_addr_t client(const std::string& name) {
    const auto [known, added] = clients_.try_emplace(name, FI_ADDR_UNSPEC);
    if (added) known->second = insert(name);
    return known->second;
  }
  void answer_waiting() {
    while (!owed_.empty()) {
      auto answer = std::make_unique<Message>();
      std::snprintf(answer->text, kBytes, "%s", life_.c_str());
      if (!post(*answer, owed_.front())) return;
      answer.release();
      owed_.pop_front();
    }
  }

  const std::string life_;
  std::vector<Message> requests_ = std::vector<Message>(256);
  std::unordered_map<std::string, fi_addr_t> clients_;
  std::list<fi_addr_t> owed_;
};

class Client : public Caller {
 public:
  explicit Client(const std::string& server) : Caller(nullptr), server_(insert(server)) {
    answer_.request = true;
    std::snprintf(request_.text, kBytes, "%s", name().c_str());
  }

  /// The life that answered last; 0: none yet.
  int served_by() const { return life_; }

  bool progress() {
    if (!receiving_) receiving_ = post(answer_, server_);
    if (asks_ && !sending_) sending_ = post(request_, server_);
    bool good = false;
    Message* const ended = next(good);
    if (ended == nullptr) return false;
    if (ended == &request_) {
      sending_ = false;
      asks_ = !good;
    } else {
      receiving_ = false;
      asks_ |= !good;
      if (good) life_ = std::atoi(answer_.text);
    }
    return true;
  }

 private:
  const fi_addr_t server_;
  Message request_, answer_;
  bool asks_ = true, sending_ = false, receiving_ = false;
  int life_ = 0;
};

void call(std::size_t count) {
  std::string server;
  std::getline(std::cin, server);
  std::list<Client> clients;
  while (clients.size() < count) clients.emplace_back(server);
  for (int life = 0;;) {
    bool busy = false, all = true;
    for (Client& each : clients) {
      busy |= each.progress();
      all &= each.served_by() > life;
    }
    if (all) {
      life = clients.front().served_by();
      std::printf("served %d\n", life);
      std::fflush(stdout);
    }
    if (!busy) usleep(kIdleMicroseconds);
  }
}

void serve(const char* port, const char* life) {
  Server server(port, life);
  std::printf("%s\n", server.name().c_str());
  std::fflush(stdout);
  for (;;) {
    if (!server.progress()) usleep(kIdleMicroseconds);
  }
}

}  // namespace

int main(int count, char** words) {
  if (count == 4 && std::strcmp(words[1], "serve") == 0) serve(words[2], words[3]);
  if (count == 3 && std::strcmp(words[1], "call") == 0) call(std::strtoul(words[2], nullptr, 10));
  std::fprintf(stderr, "served: serve PORT LIFE, or call COUNT\n");
  return 2;
}
