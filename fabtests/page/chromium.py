"""Debian's Chromium, driven by its own driver through Selenium, and the checks that tests of the page make in it."""
import contextlib
import os
import shutil
import tempfile
import time

from PIL import Image
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

import axe

HEIGHT_MAX, COLOURS = 2400, 96
WIDTHS = {"wide": (1360, 900), "tablet": (820, 1100), "phone": (390, 844)}


class Chromium:
    def __init__(self, address):
        self.address, self._axe = address, ""
        self._profile = tempfile.mkdtemp(prefix="page-test-")
        options = Options()
        options.binary_location = shutil.which("chromium")
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--ignore-certificate-errors",
                     f"--user-data-dir={self._profile}", "--window-size=1360,900", "--disable-extensions", "--force-device-scale-factor=1",
                     "--proxy-server=direct://", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.driver.set_page_load_timeout(60)

    def close(self):
        self.driver.quit()
        shutil.rmtree(self._profile, ignore_errors=True)

    def go(self, path):
        self.driver.get(self.address.rstrip("/") + path)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector="body"):
        """Reads it in one step, so that a refresh of the part meanwhile does no harm; empty if there is none."""
        return self.driver.execute_script("const e = document.querySelector(arguments[0]); return e ? e.innerText : '';", selector)

    def count(self, selector):
        return self.driver.execute_script("return document.querySelectorAll(arguments[0]).length;", selector)

    def fill(self, name, text):
        field = self.one(f"[name={name}]")
        field.clear()
        field.send_keys(text)

    def submit(self, selector):
        """Presses the button and waits for the page that follows."""
        button = self.one(selector)
        button.click()
        self.until(30, lambda: self._is_gone(button), f"a page after {selector}")

    def answer(self, selector, yes):
        """Presses a button that asks, and answers; returns the question. With yes, waits for the page that follows."""
        button = self.one(selector)
        button.click()
        question = self.driver.switch_to.alert
        text = question.text
        if yes:
            question.accept()
            self.until(30, lambda: self._is_gone(button), f"a page after {selector}")
        else:
            question.dismiss()
        return text

    @staticmethod
    def _is_gone(element):
        try:
            return element.tag_name is None
        except (StaleElementReferenceException, WebDriverException):
            return True

    def until(self, seconds, condition, what=""):
        """Seconds until the condition held, asked again and again."""
        started = time.monotonic()
        while not condition():
            if time.monotonic() - started > seconds:
                raise AssertionError(f"{what or condition}: not within {seconds} s; the page says: {self.text()[:1500]}")
        return time.monotonic() - started

    def log_in(self, user, password):
        self.driver.delete_all_cookies()
        self.go("/login")
        self.fill("user", user)
        self.fill("password", password)
        self.submit("form.login button")

    def browser_errors(self):
        """The browser's own error messages: scripts and styles that the policy refuses, missing files."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] == "SEVERE" and "status of 4" not in entry["message"]]

    def foreign_requests(self):
        """Addresses of other hosts that the page asked for something."""
        names = self.driver.execute_script("return performance.getEntriesByType('resource').map(e => e.name);")
        return [name for name in names if not name.startswith(self.address)]

    def submit_without_leaving(self, selector):
        self.one(selector).click()

    def hold(self, selector, meanwhile):
        """Presses the mouse on it, and releases it where it is after `meanwhile`."""
        ActionChains(self.driver).move_to_element(self.one(selector)).perform()
        chain = ActionChains(self.driver)
        chain.w3c_actions.pointer_action.pointer_down()
        chain.perform()
        meanwhile()
        chain = ActionChains(self.driver)
        chain.w3c_actions.pointer_action.pointer_up()
        chain.perform()

    def forge(self, path, fields):
        """A page of another host sends a form to ours, and the browser follows."""
        inputs = "".join(f"<input name='{name}' value='{value}'>" for name, value in fields.items())
        self.driver.get(f"data:text/html,<form method=post action='{self.address.rstrip('/')}{path}'>{inputs}<button>x</button></form>")
        self.submit("button")

    def type(self, *keys):
        """Into what has the focus."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def focus(self, selector):
        self.driver.execute_script("document.querySelector(arguments[0]).focus();", selector)

    def attribute_of_focused(self, name):
        return self.driver.execute_script("return document.activeElement.getAttribute(arguments[0]);", name)

    def violations(self):
        """What axe-core finds on this page."""
        self._axe = self._axe or axe.source()
        return axe.violations(self.driver, self._axe)

    def focused(self):
        return self.driver.execute_script("return document.activeElement.innerText;")

    def without_words(self):
        """Elements to which a screen reader has nothing to say, and headings that are not one tree."""
        return self.driver.execute_script("""
            const bad = [];
            if (document.querySelectorAll("h1").length !== 1) { bad.push("h1"); }
            if (!document.documentElement.lang || !document.title || !document.querySelector("main")) { bad.push("frame"); }
            document.querySelectorAll("input:not([type=hidden]), select, textarea").forEach(e => {
              if (!e.labels.length && !e.getAttribute("aria-label")) { bad.push(e.outerHTML); } });
            document.querySelectorAll("a, button").forEach(e => { if (!e.innerText.trim()) { bad.push(e.outerHTML); } });
            document.querySelectorAll("th:not(.u-legend th)").forEach(e => { if (!e.scope) { bad.push(e.outerHTML); } });
            document.querySelectorAll("[aria-labelledby]").forEach(e => {
              if (!document.getElementById(e.getAttribute("aria-labelledby"))) { bad.push(e.outerHTML.slice(0, 80)); } });
            const ids = Array.from(document.querySelectorAll("[id]")).map(e => e.id);
            ids.forEach((id, at) => { if (ids.indexOf(id) !== at) { bad.push("twice: " + id); } });
            return bad;""")

    @contextlib.contextmanager
    def at(self, width):
        """As wide as one of WIDTHS, for a while."""
        metrics = {"width": WIDTHS[width][0], "height": WIDTHS[width][1], "deviceScaleFactor": 1, "mobile": width == "phone"}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        yield metrics
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def picture(self, directory, name, width):
        """A screenshot of the whole page at one of WIDTHS, in few colours."""
        path = os.path.join(directory, f"{name}_{width}.png")
        with self.at(width) as metrics:
            height = self.driver.execute_script("return document.documentElement.scrollHeight;")
            metrics["height"] = max(metrics["height"], min(HEIGHT_MAX, height))
            self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            self.driver.save_screenshot(path)
        with Image.open(path) as image:
            image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)

    def overflows(self):
        """Whether the page as a whole scrolls sideways."""
        return self.driver.execute_script("return document.documentElement.scrollWidth > document.documentElement.clientWidth;")
