// How much gets through: one endpoint receives, others in one process send to it. Only libfabric's interface
// is used.
//
//   goodput receive PORT
//   goodput send HOST PORT ENDPOINTS BYTES MESSAGES     each endpoint sends so many
//
// The receiver prints "gap" at its end: the longest time between two messages that followed each other, in
// seconds, from the first long one on. The sender says hello from each endpoint, prints "warm", waits for a
// line, sends, and prints "sent" with the bytes of payload and the seconds they took; then it waits for the
// end of its input before it closes, so that what the network counts until then is of the measurement alone.
// The receiver ends with its input.
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kReceivesPosted = 64;
constexpr std::size_t kSendsUnderWay = 2;  // of each endpoint: the next is announced while one is pulled
constexpr std::size_t kBytesMax = 1 << 20;
constexpr std::size_t kHelloBytes = 8;

void must(long status, const char* what) {
  if (status >= 0) return;
  std::fprintf(stderr, "goodput: %s: %s\n", what, fi_strerror(static_cast<int>(-status)));
  std::exit(1);
}

struct CloseFid {
  template <typename Object>
  void operator()(Object* object) const {
    fi_close(&object->fid);
  }
};
template <typename Object>
using Owned = std::unique_ptr<Object, CloseFid>;

/// One domain with a queue that all its endpoints share.
class Node {
 public:
  explicit Node(const char* port) {
    fi_info* hints = fi_allocinfo();
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG;
    hints->fabric_attr->prov_name = strdup("cluster");
    must(fi_getinfo(FI_VERSION(1, 15), nullptr, port, port != nullptr ? FI_SOURCE : 0, hints, &info_),
         "fi_getinfo");
    fi_freeinfo(hints);
    fid_fabric* fabric = nullptr;
    must(fi_fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
    fabric_.reset(fabric);
    fid_domain* domain = nullptr;
    must(fi_domain(fabric, info_, &domain, nullptr), "fi_domain");
    domain_.reset(domain);
    fi_cq_attr queue{};
    queue.format = FI_CQ_FORMAT_MSG;
    queue.size = 4096;
    fid_cq* completions = nullptr;
    must(fi_cq_open(domain, &queue, &completions, nullptr), "fi_cq_open");
    queue_.reset(completions);
    fi_av_attr addresses{};
    addresses.type = FI_AV_TABLE;
    fid_av* vector = nullptr;
    must(fi_av_open(domain, &addresses, &vector, nullptr), "fi_av_open");
    addresses_.reset(vector);
  }
  ~Node() {
    endpoints_.clear();
    fi_freeinfo(info_);
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  fid_ep* open_endpoint() {
    fid_ep* endpoint = nullptr;
    must(fi_endpoint(domain_.get(), info_, &endpoint, nullptr), "fi_endpoint");
    endpoints_.emplace_back(endpoint);
    must(fi_ep_bind(endpoint, &queue_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    must(fi_ep_bind(endpoint, &addresses_->fid, 0), "fi_ep_bind");
    must(fi_enable(endpoint), "fi_enable");
    return endpoint;
  }

  fi_addr_t resolve(const char* host, const char* port) {
    fi_addr_t handle = FI_ADDR_UNSPEC;
    if (fi_av_insertsvc(addresses_.get(), host, port, &handle, 0, nullptr) != 1)
      must(-FI_EADDRNOTAVAIL, host);
    return handle;
  }

  /// The context of one completion, and how long its message is; null if there is none.
  void* completed(std::size_t* bytes = nullptr) {
    fi_cq_msg_entry entry{};
    const ssize_t count = fi_cq_read(queue_.get(), &entry, 1);
    if (count == -FI_EAGAIN) return nullptr;
    if (count == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      fi_cq_readerr(queue_.get(), &error, 0);
      must(-error.err, "an operation");
    }
    must(count, "fi_cq_read");
    if (bytes != nullptr) *bytes = entry.len;
    return entry.op_context;
  }

 private:
  fi_info* info_ = nullptr;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_cq> queue_;
  Owned<fid_av> addresses_;
  std::vector<Owned<fid_ep>> endpoints_;
};

bool input_ready() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, 0) > 0;
}

/// The longest time between two messages.
class Gap {
 public:
  void message() {
    const auto now = std::chrono::steady_clock::now();
    if (any_) longest_ = std::max(longest_, now - last_);
    any_ = true;
    last_ = now;
  }
  double longest() const { return std::chrono::duration<double>(longest_).count(); }

 private:
  bool any_ = false;
  std::chrono::steady_clock::time_point last_;
  std::chrono::steady_clock::duration longest_{};
};

void receive(const char* port) {
  std::vector<std::vector<char>> buffers(kReceivesPosted,
                                         std::vector<char>(kBytesMax));  // outlives its remote writers
  Node node(port);
  fid_ep* endpoint = node.open_endpoint();
  const auto post = [&](std::vector<char>& buffer) {
    must(fi_recv(endpoint, buffer.data(), buffer.size(), nullptr, FI_ADDR_UNSPEC, &buffer), "fi_recv");
  };
  for (auto& buffer : buffers) post(buffer);
  std::puts("ready");
  std::fflush(stdout);
  Gap gap;
  while (!input_ready()) {
    for (int turn = 0; turn < 1000; ++turn) {
      std::size_t bytes = 0;
      void* context = node.completed(&bytes);
      if (context == nullptr) continue;
      if (bytes > kHelloBytes) gap.message();
      post(*static_cast<std::vector<char>*>(context));
    }
  }
  std::printf("gap %.6f\n", gap.longest());
}

struct Sender {
  fid_ep* endpoint;
  std::size_t to_post;
  std::size_t under_way = 0;
};

void send_all(Node& node, std::vector<Sender>& senders, fi_addr_t to, const std::vector<char>& payload) {
  std::size_t unfinished = 0;
  for (const Sender& sender : senders) unfinished += sender.to_post;
  while (unfinished > 0) {
    for (Sender& sender : senders) {
      while (sender.to_post > 0 && sender.under_way < kSendsUnderWay) {
        const ssize_t status = fi_send(sender.endpoint, payload.data(), payload.size(), nullptr, to, &sender);
        if (status == -FI_EAGAIN) break;
        must(status, "fi_send");
        --sender.to_post;
        ++sender.under_way;
      }
    }
    while (void* context = node.completed()) {
      --static_cast<Sender*>(context)->under_way;
      --unfinished;
    }
  }
}

/// Serves the network until there is a line, or the end, of the input.
void await_input(Node& node) {
  while (!input_ready()) node.completed();
  char line[80];
  if (std::fgets(line, sizeof line, stdin) == nullptr) return;
}

void send(char** words) {
  std::vector<Sender> senders(std::strtoul(words[2], nullptr, 10));
  const std::vector<char> payload(std::strtoul(words[3], nullptr, 10), 'x');
  Node node(nullptr);
  const fi_addr_t to = node.resolve(words[0], words[1]);
  const std::size_t messages = std::strtoul(words[4], nullptr, 10);
  for (Sender& sender : senders) sender = {node.open_endpoint(), 1};
  const std::vector<char> hello(kHelloBytes);
  send_all(node, senders, to, hello);
  std::puts("warm");
  std::fflush(stdout);
  await_input(node);
  for (Sender& sender : senders) sender.to_post = messages;
  const auto begin = std::chrono::steady_clock::now();
  send_all(node, senders, to, payload);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("sent %zu %.6f\n", senders.size() * messages * payload.size(), took.count());
  std::fflush(stdout);
  await_input(node);
}

}  // namespace

int main(int count, char** words) {
  const std::string mode = count > 1 ? words[1] : "";
  if (mode == "receive" && count == 3) {
    receive(words[2]);
  } else if (mode == "send" && count == 7) {
    send(words + 2);
  } else {
    std::fprintf(stderr, "usage: goodput receive PORT | goodput send HOST PORT ENDPOINTS BYTES MESSAGES\n");
    return 2;
  }
  return 0;
}
