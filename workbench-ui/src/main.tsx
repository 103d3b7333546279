import { render } from "preact";
import { report, search, selectEvent } from "./state/actions";
import { enter } from "./state/entry";
import { applyLink, followAddress } from "./state/history";
import { followLinks } from "./state/links";
import { watchWindow } from "./state/motion";
import { noteRecent } from "./state/recent";
import { followSessions, socket } from "./state/sessions";
import { activeId } from "./state/store";
import { followTheme } from "./state/theme";
import { startKeyboard } from "./keyboard/dispatch";
import { App } from "./shell/App";
import { refuseDrops } from "./shell/drop";
import "./style/tokens.css";
import "./style/base.css";
import "./style/shell.css";
import "./style/timeline.css";
import "./style/panels.css";

const target = {
  openSession: (id: string) => {
    activeId.value = id;
  },
  selectEvent: (event: string) => void selectEvent(event, { show: false, remember: false }),
  search: (text: string) => void search(text),
};

followTheme();
const link = followAddress(target, () => location.reload());
watchWindow();
followLinks();
startKeyboard();
refuseDrops();
const root = document.getElementById("app");
if (root) render(<App />, root);
void enter()
  .then((isIn) => {
    if (!isIn) return;
    followSessions(link, (first) => {
      noteRecent();
      if (first !== null) applyLink(first, target);
    });
    socket.connect();
  })
  .catch(report);
