import { Floats, NoticeBar, StatusBar } from "../panels";
import { LiveRegion } from "../a11y/LiveRegion";
import { Screen, screenOf } from "./Screens";
import { TitleBar } from "./TitleBar";
import { Workspace } from "./Workspace";

export function App() {
  const screen = screenOf();
  return (
    <div class="shell">
      <TitleBar />
      <div>
        <NoticeBar />
      </div>
      <main class="shell-main" id="main">
        {screen === null ? <Workspace /> : <Screen of={screen} />}
      </main>
      <StatusBar />
      <Floats />
      <LiveRegion />
    </div>
  );
}
